"""The court: verdicts → labels, by the policy of each task.

The rules, for one response:

* Verdicts of `human:<name>` decide first, under every policy.
* `escalate`: the query's rule scorer, then each of `then`. A step is passed when
  it abstains, and under `not_correct` also when it says incorrect. The last
  step that said correct or incorrect decides. Every abstention to the end makes
  the response `unreadable`: incorrect, or null if the policy says so.
* `majority`: all of them vote, abstentions do not count; a tie stays undecided.
* `unanimous`: all that do not abstain must agree, else the label stays
  undecided and contested.
* A step that errs, or whose verdict was never filed, leaves the response
  undecided when the policy needs it. An outage is never a verdict.

For several samples the label's score is the mean over the decided samples, and
`correct` is that mean ≥ the task's threshold, else the deciding scorer's own.
Where neither sets one the outcomes count, and not the scores beside them: the
label is correct when at least half of the decided samples are. `contested`
says that current verdicts on a sample disagree, or that a text commits to
several answers, whatever the policy made of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.label.policies import PolicyDecisions, apply_people, apply_policy
from pipelines.label.verdict_matrix import (
    VerdictMatrix,
    lay_out,
)
from schemas import LABELS
from schemas.recipe import Label


def decide(
    queries: pa.Table, responses: pa.Table, verdicts: pa.Table, *, policy: Label | None = None
) -> pa.Table:
    """The court's labels: one row for every pair that has a response row.

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
    bench = lay_out(queries, responses, verdicts)
    return _labels(bench, _try(queries, bench, policy or Label()))


def open_steps(
    queries: pa.Table, responses: pa.Table, verdicts: pa.Table, *, policy: Label | None = None
) -> dict[str, list[tuple[str, str, int]]]:
    """Scorer → (query_id, model_id, sample) that the policy still wants it to judge.

    Only steps that have come up are listed: while a rule decides, or has not been
    run yet, the verifier behind it is not asked. Steps that erred are listed
    again, so that the next run mends an outage. What a person has decided is not
    asked again.
    """
    bench = lay_out(queries, responses, verdicts)
    ruling = _try(queries, bench, policy or Label())
    found = {}
    for name, parts in sorted(ruling.wanted.items()):
        rows = np.sort(np.concatenate(parts))
        rows = rows[~ruling.by_person[rows]]
        pair = pa.array(bench.pair[rows])
        keys = (bench.query_ids.take(pair), bench.model_ids.take(pair))
        if len(rows):
            ids = (keys[0].to_pylist(), keys[1].to_pylist(), bench.sample[rows].tolist())
            found[name] = list(zip(*ids, strict=True))
    return found


def _try(queries: pa.Table, bench: VerdictMatrix, policy: Label) -> PolicyDecisions:
    tasks, task_of = _factor(queries.column("task"))
    rules, rule_of = _factor(queries.column("scorer"))
    task = task_of[bench.query][bench.pair]
    rule = rule_of[bench.query][bench.pair]
    ruling = PolicyDecisions.blank(len(bench.pair))
    ruling.defined = [f"xverify:{one.name}" for one in policy.verifiers]
    ruling.defined += [f"judge:{one.name}" for one in policy.judges]
    groups, group = np.unique(task * max(len(rules), 1) + rule, return_inverse=True)
    for index, code in enumerate(groups.tolist()):
        rows = np.flatnonzero(group == index)
        task_name, scorer = tasks[code // len(rules)], rules[code % len(rules)]
        apply_policy(bench, policy.tasks.get(task_name, policy.default), scorer, rows, ruling)
    apply_people(bench, ruling)
    return ruling


def _labels(bench: VerdictMatrix, ruling: PolicyDecisions) -> pa.Table:
    pairs = len(bench.query_ids)
    decided = ~np.isnan(ruling.score)
    pair = bench.pair[decided]
    entered = np.bincount(pair, minlength=pairs)
    total = np.bincount(pair, weights=ruling.score[decided], minlength=pairs)
    mean = np.divide(total, entered, out=np.full(pairs, np.nan), where=entered > 0)

    right = np.bincount(pair, weights=ruling.correct[decided], minlength=pairs)
    limits = np.full(pairs, -np.inf)
    np.maximum.at(limits, pair, np.nan_to_num(ruling.threshold[decided], nan=-np.inf))
    # One sample: its own outcome. Several: the mean against the threshold. Without one a score
    # need not say what is right (ReCoRD's is token F1 beside exact match): the outcomes do.
    by_outcome = (entered == 1) | np.isneginf(limits)
    correct = np.where(by_outcome, 2 * right >= entered, mean >= limits)

    contested = np.zeros(pairs, bool)
    np.logical_or.at(contested, bench.pair, ruling.contested)
    undecided = entered == 0
    return LABELS.check(
        pa.table(
            {
                "query_id": bench.query_ids,
                "model_id": bench.model_ids,
                "score": pa.array(mean, mask=undecided),
                "correct": pa.array(correct, mask=undecided),
                "decided_by": _deciders(bench, ruling, pairs, undecided),
                "contested": contested,
                "n_samples": pa.array(entered, pa.int32()),
            }
        )
    )


def _deciders(
    bench: VerdictMatrix, ruling: PolicyDecisions, pairs: int, undecided: Any
) -> pa.Array:
    """Who decided; several names, joined by `+`, when samples were decided by several."""
    # A decided pair lists who decided its decided samples; an undecided one may
    # still say that nothing could be read.
    counts = np.zeros((len(ruling.names), pairs), bool)
    named = (ruling.by >= 0) & (~np.isnan(ruling.score) | undecided[bench.pair])
    counts[ruling.by[named], bench.pair[named]] = True
    order = sorted(range(len(ruling.names)), key=lambda at: ruling.names[at])
    code = np.zeros(pairs, np.int64)
    for bit, at in enumerate(order):
        code |= counts[at].astype(np.int64) << bit
    unique, back = np.unique(code, return_inverse=True)
    words = [
        "+".join(ruling.names[at] for bit, at in enumerate(order) if value >> bit & 1) or None
        for value in unique.tolist()
    ]
    return pa.array(words, pa.string()).take(pa.array(back))


def _factor(values: Any) -> tuple[list[str], Any]:
    names = pc.unique(values).to_pylist()
    codes = pc.index_in(values, value_set=pa.array(names, pa.string()))
    return names, codes.cast(pa.int64()).to_numpy()
