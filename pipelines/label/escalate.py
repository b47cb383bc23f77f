"""Verdicts of verifiers and judges that the policies still need."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.pipelines.label.aggregate import open_steps
from routeyard.pipelines.label.judge import judge
from routeyard.pipelines.label.verdicts import FiledVerdicts
from routeyard.pipelines.label.xverify import verify
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas import VERDICTS
from routeyard.schemas.recipe import Label


def ask_verifiers_and_judges(
    queries: pa.Table,
    responses: pa.Table,
    verdicts: pa.Table,
    *,
    policy: Label,
    ledger: Ledger,
    run: str,
    benchmark: str = "",
    send: bool = True,
) -> FiledVerdicts:
    """The verdicts given, plus those of every verifier and judge that a policy calls on.

    Steps are asked in rounds: a judge behind a verifier is asked only about what
    the verifier left open. An error is asked again by the next run, not by this one.

    Args:
        benchmark: Whose budgets are spent.
        send: False sends no request and uses the answers in the ledger.

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
            how: dict[str, Any] = {"run": run, "benchmark": benchmark, "only": keys, "send": send}
            if name in verifiers:
                filed = verify(queries, responses, verifiers[name], ledger, **how)
            elif name in judges:
                filed = judge(queries, responses, judges[name], ledger, **how)
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


def add(verdicts: pa.Table, more: pa.Table) -> pa.Table:
    """Both, where a verdict under the same key is replaced by the later one.

    Only an `error` is ever replaced that way: a scorer's decision has its version
    in the key, and its ledger answers the same again.
    """
    if not more.num_rows:
        return verdicts
    key = list(VERDICTS.key)
    left = verdicts.append_column("row", pa.array(range(verdicts.num_rows), pa.int64()))
    kept = left.join(more.select(key), keys=key, join_type="left anti")
    rows = kept.column("row").combine_chunks().sort()
    return VERDICTS.check(pa.concat_tables([verdicts.take(rows), more]))
