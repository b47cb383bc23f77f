"""Verdicts → labels, by the policy of each task.

The rules, for one response:

* Verdicts of `human:<name>` decide first, under every policy.
* `escalate`: the query's rule scorer, then each of `then`. A step is passed when
  it abstains, and under `not_correct` also when it says incorrect. The last
  step that said correct or incorrect decides. Every abstention to the end makes
  the response `unreadable`: null, or incorrect if the policy says so. Cut off, refused
  and empty answers that nobody could read are incorrect, decided by their status.
* Where a model's answers carry grades of their source, those are its labels (`trust:
  given`) and the rule's verdicts a check; with `trust: rules` the rule decides.
* `majority`: all of them vote, abstentions do not count; a tie stays undecided.
* `unanimous`: all that do not abstain must agree, else the label stays
  undecided and contested.
* A step that errs, or whose verdict was never filed, leaves the response
  undecided when the policy needs it. An outage is never a verdict.

For several samples the label's score is the mean over the decided samples, and
`correct` is that mean ≥ the task's threshold, else the deciding scorer's own.
Where neither sets one the outcomes count, and not the scores beside them: the
label is correct when more than half of the decided samples are. A mean of exactly
one half counts so too: one right sample of two is no right answer. `contested`
says that current verdicts on a sample disagree, or that a text commits to
several answers, whatever the policy made of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.label.policies import PolicyDecisions, apply_people, apply_policy
from routeyard.pipelines.label.verdict_matrix import (
    ResponseKey,
    VerdictMatrix,
    keys,
    lay_out,
    with_text,
)
from routeyard.schemas import LABELS
from routeyard.schemas.recipe import Label


def decide(
    queries: pa.Table, responses: pa.Table, verdicts: pa.Table, *, policy: Label | None = None
) -> pa.Table:
    """Labels: one row for every pair that has a response row.

    A pair whose responses are all `error` gets a row with nulls and
    `n_samples` 0; a pair without any response gets none.

    Args:
        queries: QUERIES contract; `task` picks the policy, `scorer` the rule.
        responses: RESPONSES contract.
        verdicts: VERDICTS contract, all versions ever filed; the newest counts.
        policy: Label section of the recipe.

    Returns:
        LABELS contract, sorted by query_id, model_id.
    """
    rules = policy or Label()
    matrix = lay_out(queries, responses, _entering(verdicts, rules))
    return _labels(matrix, _apply_policies(queries, matrix, rules))


def open_steps(
    queries: pa.Table, responses: pa.Table, verdicts: pa.Table, *, policy: Label | None = None
) -> dict[str, list[ResponseKey]]:
    """Scorer → (query_id, model_id, sample) that the policy still wants it to judge.

    Only steps that have come up are listed: while a rule decides, or has not been
    run yet, the verifier behind it is not asked. Steps that erred are listed
    again, so that the next run repairs an outage. What a person has decided is not
    asked again. Judges that decide nothing are wanted for every first answer.
    """
    rules = policy or Label()
    matrix = lay_out(queries, responses, _entering(verdicts, rules))
    decisions = _apply_policies(queries, matrix, rules)
    found = {name: _without(name, responses, verdicts) for name in rules.opinions}
    for name, parts in sorted(decisions.wanted.items()):
        rows = np.sort(np.concatenate(parts))
        rows = rows[~decisions.by_person[rows]]
        pair = pa.array(matrix.pair[rows])
        ids = [matrix.query_ids.take(pair), matrix.model_ids.take(pair), matrix.sample[rows]]
        found[name] = keys(pa.table(ids, names=["query_id", "model_id", "sample"]))
    return {name: wanted for name, wanted in found.items() if wanted}


def _entering(verdicts: pa.Table, policy: Label) -> pa.Table:
    """The verdicts without those that are opinions alone."""
    if not policy.opinions:
        return verdicts
    opinions = pa.array(policy.opinions, pa.string())
    return verdicts.filter(pc.invert(pc.is_in(verdicts.column("scorer"), value_set=opinions)))


def _without(scorer: str, responses: pa.Table, verdicts: pa.Table) -> list[ResponseKey]:
    """First answers with a text on which a scorer has given no verdict but errors."""
    given = verdicts.filter(
        pc.and_(pc.equal(verdicts["scorer"], scorer), pc.not_equal(verdicts["outcome"], "error"))
    )
    first = with_text(responses).filter(pc.field("sample") == 0)
    return sorted(set(keys(first)) - set(keys(given)))


def _apply_policies(queries: pa.Table, matrix: VerdictMatrix, policy: Label) -> PolicyDecisions:
    kinds = list(zip(*queries.select(["task", "scorer"]).to_pydict().values(), strict=True))
    known = {kind: code for code, kind in enumerate(dict.fromkeys(kinds))}
    kind_of = np.array([known[kind] for kind in kinds], np.int64)[matrix.query][matrix.pair]
    decisions = PolicyDecisions(len(matrix.pair))
    defined = [f"xverify:{one.name}" for one in policy.verifiers]
    defined += [f"judge:{one.name}" for one in policy.judges]
    for (task, scorer), code in known.items():
        rows = np.flatnonzero(kind_of == code)
        apply_policy(matrix, policy.policy_of(task), scorer, rows, decisions, defined)
    apply_people(matrix, decisions)
    return decisions


def _labels(matrix: VerdictMatrix, decisions: PolicyDecisions) -> pa.Table:
    pairs = len(matrix.query_ids)
    decided = ~np.isnan(decisions.score)
    pair = matrix.pair[decided]
    entered = np.bincount(pair, minlength=pairs)
    total = np.bincount(pair, weights=decisions.score[decided], minlength=pairs)
    mean = np.divide(total, entered, out=np.full(pairs, np.nan), where=entered > 0)

    right = np.bincount(pair, weights=decisions.correct[decided], minlength=pairs)
    limits = np.full(pairs, -np.inf)
    np.maximum.at(limits, pair, np.nan_to_num(decisions.threshold[decided], nan=-np.inf))
    # One sample: its own outcome. Several: the mean against the threshold. Without one a score
    # need not say what is right (ReCoRD's is token F1 beside exact match): the outcomes do.
    by_outcome = (entered == 1) | np.isneginf(limits)
    most = 2 * right > entered
    halves = (mean == 0.5) & (limits == 0.5)
    correct = np.where(by_outcome | halves, most, mean >= limits)

    contested = np.zeros(pairs, bool)
    np.logical_or.at(contested, matrix.pair, decisions.contested)
    undecided = entered == 0
    return LABELS.check(
        pa.table(
            {
                "query_id": matrix.query_ids,
                "model_id": matrix.model_ids,
                "score": pa.array(mean, mask=undecided),
                "correct": pa.array(correct, mask=undecided),
                "decided_by": _deciders(matrix, decisions, pairs, undecided),
                "contested": contested,
                "n_samples": pa.array(entered, pa.int32()),
            }
        )
    )


def _deciders(
    matrix: VerdictMatrix, decisions: PolicyDecisions, pairs: int, undecided: Any
) -> pa.Array:
    """Who decided; several names, joined by `+`, when samples were decided by several."""
    # A decided pair lists who decided its decided samples; an undecided one may
    # still say that nothing could be read.
    named = (decisions.by >= 0) & (~np.isnan(decisions.score) | undecided[matrix.pair])
    order = sorted(range(len(decisions.names)), key=decisions.names.__getitem__)
    rank, n = np.argsort(np.array(order, np.int64)), max(len(order), 1)
    each = matrix.pair[named] * n + rank[decisions.by[named]]
    if not (np.diff(each) > 0).all():  # several samples of a pair: each name once
        each = np.unique(each)
    words = pa.array(sorted(decisions.names), pa.string()).take(pa.array(each % n))
    ends = pa.array(np.searchsorted(each, np.arange(pairs + 1) * n), pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(ends, words), "+")
    return pc.if_else(pc.equal(joined, ""), None, joined)
