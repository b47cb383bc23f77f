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
`correct` is that mean ≥ the task's threshold (else the deciding scorer's own,
else 0.5). `contested` says that current verdicts on a sample disagree, or that
a text commits to several answers, whatever the policy made of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.label.verdict_matrix import (
    ABSTAIN,
    CORRECT,
    ERROR,
    INCORRECT,
    MISSING,
    Bench,
    lay_out,
)
from pipelines.scorers import SCORERS
from pipelines.scorers.scorer import GIVEN, NO_RULE
from schemas import LABELS
from schemas.recipe import Label, Policy

#: `decided_by` of a response that every scorer abstained on.
UNREADABLE = "unreadable"


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


def _try(queries: pa.Table, bench: Bench, policy: Label) -> _Ruling:
    tasks, task_of = _factor(queries.column("task"))
    rules, rule_of = _factor(queries.column("scorer"))
    task = task_of[bench.query][bench.pair]
    rule = rule_of[bench.query][bench.pair]
    ruling = _Ruling.blank(len(bench.pair))
    ruling.defined = [f"xverify:{one.name}" for one in policy.verifiers]
    ruling.defined += [f"judge:{one.name}" for one in policy.judges]
    groups, group = np.unique(task * max(len(rules), 1) + rule, return_inverse=True)
    for index, code in enumerate(groups.tolist()):
        rows = np.flatnonzero(group == index)
        task_name, scorer = tasks[code // len(rules)], rules[code % len(rules)]
        _rule(bench, policy.tasks.get(task_name, policy.default), scorer, rows, ruling)
    _humans(bench, ruling)
    return ruling


@dataclass
class _Ruling:
    """What became of each response.

    score: float64, NaN while undecided. correct: bool. by: index into `names`,
    -1 while undecided. threshold: NaN where neither policy nor scorer sets one.
    contested: bool. defined: verifiers and judges the recipe names. wanted: rows
    on which a scorer is needed and has given no verdict. by_person: bool.
    """

    score: Any
    correct: Any
    by: Any
    threshold: Any
    contested: Any
    names: list[str]
    defined: list[str] = field(default_factory=list)
    wanted: dict[str, list[Any]] = field(default_factory=dict)
    by_person: Any = None

    @classmethod
    def blank(cls, n: int) -> _Ruling:
        return cls(
            np.full(n, np.nan),
            np.zeros(n, bool),
            np.full(n, -1, np.int64),
            np.full(n, np.nan),
            np.zeros(n, bool),
            [],
        )

    def name(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def put(self, rows: Any, score: Any, correct: Any, by: str, threshold: float) -> None:
        self.score[rows] = score
        self.correct[rows] = correct
        self.by[rows] = self.name(by)
        self.threshold[rows] = threshold


def _rule(bench: Bench, policy: Policy, scorer: str, rows: Any, ruling: _Ruling) -> None:
    """Decide `rows`, which share task policy and rule scorer."""
    outcome, score = bench.outcome[:, rows], bench.score[:, rows]
    if policy.threshold is not None:
        reached = np.where(score >= policy.threshold, CORRECT, INCORRECT)
        graded = (outcome == CORRECT) | (outcome == INCORRECT)
        outcome = np.where(graded, reached, outcome).astype(np.int8)
    yes, no = (outcome == CORRECT).any(axis=0), (outcome == INCORRECT).any(axis=0)
    ruling.contested[rows] = (yes & no) | bench.conflict[rows]

    steps = _steps({*bench.scorers, *ruling.defined}, policy, scorer)
    missing = np.full(len(rows), MISSING, np.int8)
    blank = np.full(len(rows), np.nan)
    heard: list[tuple[str, Any, Any]] = []
    for name in steps:
        if name in bench.scorers:
            at = bench.scorers.index(name)
            heard.append((name, outcome[at], score[at]))
        else:
            heard.append((name, missing, blank))
    if heard and heard[0][0] == scorer and scorer != GIVEN and GIVEN in bench.scorers:
        # A stored score without any text has only the score its source carries.
        at = bench.scorers.index(GIVEN)
        alone = (heard[0][1] == MISSING) & (outcome[at] != MISSING)
        given = rows[alone]
        ruling.put(
            given, score[at][alone], outcome[at][alone] == CORRECT, GIVEN, _limit(policy, GIVEN)
        )
        heard = [(name, said[~alone], value[~alone]) for name, said, value in heard]
        rows = rows[~alone]
    if not heard or not len(rows):
        return
    if policy.rule == "escalate":
        _escalate(policy, scorer, heard, rows, ruling)
    else:
        _vote(policy, heard, rows, ruling)


def _steps(known: set[str], policy: Policy, scorer: str) -> list[str]:
    steps = [] if scorer == NO_RULE else [scorer]
    for name in policy.then:
        family = sorted(one for one in known if one.startswith(f"{name}:"))
        steps += [step for step in (family or [name]) if step not in steps]
    return steps


def _escalate(
    policy: Policy, scorer: str, heard: list[tuple[str, Any, Any]], rows: Any, ruling: _Ruling
) -> None:
    on = policy.escalate_on or _escalates_on(scorer)
    passing = (ABSTAIN, INCORRECT) if on == "not_correct" else (ABSTAIN,)
    n = len(rows)
    here = np.ones(n, bool)  # still going up
    held = np.ones(n, bool)  # no step failed on the way
    last = np.full(n, -1)  # the last step that said anything
    for at, (name, outcome, _) in enumerate(heard):
        _want(ruling, name, rows[here & ((outcome == ERROR) | (outcome == MISSING))])
        last[here & ((outcome == CORRECT) | (outcome == INCORRECT))] = at
        held[here & ((outcome == ERROR) | (outcome == MISSING))] = False
        here = here & held & np.isin(outcome, passing)
    for at, (name, outcome, score) in enumerate(heard):
        decides = held & (last == at)
        limit = _limit(policy, name)
        ruling.put(rows[decides], score[decides], outcome[decides] == CORRECT, name, limit)
    _unreadable(policy, rows[held & (last == -1)], ruling)


def _escalates_on(scorer: str) -> str:
    return SCORERS.get(scorer).escalate_on if scorer in SCORERS.targets else "abstain"


def _vote(policy: Policy, heard: list[tuple[str, Any, Any]], rows: Any, ruling: _Ruling) -> None:
    for name, said, _ in heard:
        _want(ruling, name, rows[(said == ERROR) | (said == MISSING)])
    outcome = np.stack([said for _, said, _ in heard])
    score = np.stack([value for _, _, value in heard])
    complete = ~((outcome == ERROR) | (outcome == MISSING)).any(axis=0)
    yes, no = (outcome == CORRECT).sum(axis=0), (outcome == INCORRECT).sum(axis=0)
    if policy.rule == "unanimous":
        settled = complete & ((yes == 0) != (no == 0))
    else:
        settled = complete & (yes != no)
    won = outcome == np.where(yes > no, CORRECT, INCORRECT)
    total = np.where(won, score, 0.0).sum(axis=0)
    mean = total / np.maximum(won.sum(axis=0), 1)
    name = heard[0][0] if len(heard) == 1 else policy.rule
    limit = _limit(policy, heard[0][0])
    ruling.put(rows[settled], mean[settled], (yes > no)[settled], name, limit)
    _unreadable(policy, rows[complete & (yes + no == 0)], ruling)


def _want(ruling: _Ruling, name: str, rows: Any) -> None:
    if len(rows):
        ruling.wanted.setdefault(name, []).append(rows)


def _unreadable(policy: Policy, rows: Any, ruling: _Ruling) -> None:
    score = 0.0 if policy.unreadable == "incorrect" else np.nan
    ruling.put(rows, score, False, UNREADABLE, _limit(policy, UNREADABLE))


def _humans(bench: Bench, ruling: _Ruling) -> None:
    """People decide over everyone; when they are split, the label is undecided."""
    ruling.by_person = np.zeros(len(bench.pair), bool)
    people = [at for at, name in enumerate(bench.scorers) if name.startswith("human:")]
    if not people:
        return
    yes = (bench.outcome[people] == CORRECT).sum(axis=0)
    no = (bench.outcome[people] == INCORRECT).sum(axis=0)
    ruling.contested |= (yes > 0) & (no > 0)
    split = np.flatnonzero((yes > 0) & (yes == no))
    ruling.score[split], ruling.by[split], ruling.correct[split] = np.nan, -1, False
    open_ = yes != no
    ruling.by_person = yes + no > 0
    for at in people:
        agrees = bench.outcome[at] == np.where(yes > no, CORRECT, INCORRECT)
        rows = np.flatnonzero(open_ & agrees)
        correct = (yes > no)[rows]
        ruling.put(rows, correct.astype(float), correct, bench.scorers[at], np.nan)
        open_[rows] = False


def _limit(policy: Policy, scorer: str) -> float:
    if policy.threshold is not None:
        return policy.threshold
    if scorer in SCORERS.targets:
        own = SCORERS.get(scorer).threshold
        return float("nan") if own is None else float(own)
    return float("nan")


def _labels(bench: Bench, ruling: _Ruling) -> pa.Table:
    pairs = len(bench.query_ids)
    decided = ~np.isnan(ruling.score)
    pair = bench.pair[decided]
    entered = np.bincount(pair, minlength=pairs)
    total = np.bincount(pair, weights=ruling.score[decided], minlength=pairs)
    mean = np.divide(total, entered, out=np.full(pairs, np.nan), where=entered > 0)

    # One sample: its own outcome. Several: the mean against the threshold.
    alone = np.zeros(pairs, bool)
    alone[pair] = ruling.correct[decided]
    limits = np.full(pairs, -np.inf)
    np.maximum.at(limits, pair, np.nan_to_num(ruling.threshold[decided], nan=-np.inf))
    limits = np.where(np.isneginf(limits), 0.5, limits)
    correct = np.where(entered == 1, alone, mean >= limits)

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


def _deciders(bench: Bench, ruling: _Ruling, pairs: int, undecided: Any) -> pa.Array:
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
