"""Verdicts of verifiers and judges that the policies still need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.pipelines.label.aggregate import open_steps
from routeyard.pipelines.label.error_rates import kind_of, p_correct
from routeyard.pipelines.label.judge import judge
from routeyard.pipelines.label.model_requests import PromptRun
from routeyard.pipelines.label.verdict_matrix import ResponseKey, add, newest
from routeyard.pipelines.label.verdicts import FiledVerdicts, answers
from routeyard.pipelines.label.xverify import verify
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe import Label


def ask_verifiers_and_judges(
    queries: pa.Table,
    responses: pa.Table,
    verdicts: pa.Table,
    *,
    policy: Label,
    ledger: Ledger,
    **how: Unpack[PromptRun],
) -> FiledVerdicts:
    """The verdicts given, plus those of every verifier and judge that a policy calls on.

    Steps are asked in rounds: a judge behind a verifier is asked only about what
    the verifier left open. An error is asked again by the next run, not by this one.

    Returns:
        All verdicts; figures per scorer: prompts asked, failed, and why it stopped.

    Raises:
        BadInput: a policy names a verifier or judge that the recipe does not define.
    """
    verifiers = {f"xverify:{one.name}": one for one in policy.verifiers}
    judges = {f"judge:{one.name}": one for one in policy.judges}
    figures: dict[str, Any] = {}
    while True:
        wanted = open_steps(queries, responses, verdicts, policy=policy)
        due = {
            name: keys
            for name, keys in wanted.items()
            if name not in figures and name.startswith(("xverify:", "judge:"))
        }
        if not due:
            return FiledVerdicts(verdicts, figures)
        for name, keys in due.items():
            served = verifiers.get(name) or judges.get(name)
            if served is not None and served.budget_usd is not None:
                keys = least_certain_first(queries, responses, verdicts, keys)
            if name in verifiers:
                filed = verify(queries, responses, verifiers[name], ledger, only=keys, **how)
            elif name in judges:
                shown = responses
                if not judges[name].decides:  # it compares the models' first answers
                    shown = responses.filter(pc.equal(responses.column("sample"), 0))
                filed = judge(queries, shown, judges[name], ledger, only=keys, **how)
            else:
                raise BadInput(
                    f"the policy calls on {name!r}, which the recipe does not define",
                    where="label",
                    next_step=did_you_mean(name, [*verifiers, *judges])
                    if verifiers or judges
                    else "add it under label.verifiers or label.judges",
                )
            figures[name] = dict(filed.figures)
            verdicts = add(verdicts, filed.verdicts)


def least_certain_first(
    queries: pa.Table, responses: pa.Table, verdicts: pa.Table, keys: Sequence[ResponseKey]
) -> list[ResponseKey]:
    """The responses, those first whose rule scorer is right least surely: a budget may end.

    Certainty is the distance of `p_correct` from one half; a verdict without a measured rate
    counts as least certain.
    """
    columns = ["query_id", "scorer", "choices"]
    asked = {row["query_id"]: row for row in queries.select(columns).to_pylist()}
    rule = {}
    for row in newest(verdicts).to_pylist():
        if row["scorer"] == asked[row["query_id"]]["scorer"]:
            rule[row["query_id"], row["model_id"], row["sample"]] = row["outcome"]
    unsure = dict.fromkeys(keys, 0.0)
    for one in answers(queries, responses, only=keys):
        of = asked[one.key[0]]
        kind = kind_of(of["scorer"], one.references, of["choices"], one.text)
        chance = p_correct(of["scorer"], rule.get(one.key, ""), kind)
        unsure[one.key] = 0.0 if chance is None else abs(chance - 0.5)
    return sorted(keys, key=lambda key: (unsure[key], key))
