"""Decisions of a policy on responses: its steps, escalation, votes, and people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from routeyard.pipelines.label.verdict_matrix import (
    ABSTAIN,
    CORRECT,
    ERROR,
    INCORRECT,
    MISSING,
    VerdictMatrix,
)
from routeyard.pipelines.scorers import SCORERS
from routeyard.pipelines.scorers.scorer import GIVEN, NO_RULE
from routeyard.schemas.recipe import Policy

#: `decided_by` of a response that every scorer abstained on.
UNREADABLE = "unreadable"


@dataclass
class PolicyDecisions:
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
    def blank(cls, n: int) -> PolicyDecisions:
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


def apply_policy(
    matrix: VerdictMatrix, policy: Policy, scorer: str, rows: Any, decisions: PolicyDecisions
) -> None:
    """Decide `rows`, which share task policy and rule scorer."""
    outcome, score = matrix.outcome[:, rows], matrix.score[:, rows]
    if policy.threshold is not None:
        reached = np.where(score >= policy.threshold, CORRECT, INCORRECT)
        graded = (outcome == CORRECT) | (outcome == INCORRECT)
        outcome = np.where(graded, reached, outcome).astype(np.int8)
    yes, no = (outcome == CORRECT).any(axis=0), (outcome == INCORRECT).any(axis=0)
    decisions.contested[rows] = (yes & no) | matrix.conflict[rows]

    names = _steps({*matrix.scorers, *decisions.defined}, policy, scorer)
    missing = np.full(len(rows), MISSING, np.int8)
    blank = np.full(len(rows), np.nan)
    steps: list[tuple[str, Any, Any]] = []
    for name in names:
        if name in matrix.scorers:
            at = matrix.scorers.index(name)
            steps.append((name, outcome[at], score[at]))
        else:
            steps.append((name, missing, blank))
    if steps and steps[0][0] == scorer and scorer != GIVEN and GIVEN in matrix.scorers:
        # A stored score without any text has only the score its source carries.
        at = matrix.scorers.index(GIVEN)
        alone = (steps[0][1] == MISSING) & (outcome[at] != MISSING)
        given = rows[alone]
        decisions.put(
            given, score[at][alone], outcome[at][alone] == CORRECT, GIVEN, _limit(policy, GIVEN)
        )
        steps = [(name, said[~alone], value[~alone]) for name, said, value in steps]
        rows = rows[~alone]
    if not steps or not len(rows):
        return
    if policy.rule == "escalate":
        _escalate(policy, scorer, steps, rows, decisions)
    else:
        _vote(policy, steps, rows, decisions)


def _steps(known: set[str], policy: Policy, scorer: str) -> list[str]:
    steps = [] if scorer == NO_RULE else [scorer]
    for name in policy.then:
        family = sorted(one for one in known if one.startswith(f"{name}:"))
        steps += [step for step in (family or [name]) if step not in steps]
    return steps


def _escalate(
    policy: Policy,
    scorer: str,
    steps: list[tuple[str, Any, Any]],
    rows: Any,
    decisions: PolicyDecisions,
) -> None:
    on = policy.escalate_on or escalates_on(scorer)
    passing = (ABSTAIN, INCORRECT) if on == "not_correct" else (ABSTAIN,)
    n = len(rows)
    here = np.ones(n, bool)  # still going up
    held = np.ones(n, bool)  # no step failed on the way
    last = np.full(n, -1)  # the last step that said anything
    for at, (name, outcome, _) in enumerate(steps):
        _want(decisions, name, rows[here & ((outcome == ERROR) | (outcome == MISSING))])
        last[here & ((outcome == CORRECT) | (outcome == INCORRECT))] = at
        held[here & ((outcome == ERROR) | (outcome == MISSING))] = False
        here = here & held & np.isin(outcome, passing)
    for at, (name, outcome, score) in enumerate(steps):
        decides = held & (last == at)
        limit = _limit(policy, name)
        decisions.put(rows[decides], score[decides], outcome[decides] == CORRECT, name, limit)
    _unreadable(policy, rows[held & (last == -1)], decisions)


def escalates_on(scorer: str) -> str:
    return SCORERS.get(scorer).escalate_on if scorer in SCORERS.targets else "abstain"


def _vote(
    policy: Policy, steps: list[tuple[str, Any, Any]], rows: Any, decisions: PolicyDecisions
) -> None:
    for name, said, _ in steps:
        _want(decisions, name, rows[(said == ERROR) | (said == MISSING)])
    outcome = np.stack([said for _, said, _ in steps])
    score = np.stack([value for _, _, value in steps])
    complete = ~((outcome == ERROR) | (outcome == MISSING)).any(axis=0)
    yes, no = (outcome == CORRECT).sum(axis=0), (outcome == INCORRECT).sum(axis=0)
    if policy.rule == "unanimous":
        settled = complete & ((yes == 0) != (no == 0))
    else:
        settled = complete & (yes != no)
    won = outcome == np.where(yes > no, CORRECT, INCORRECT)
    total = np.where(won, score, 0.0).sum(axis=0)
    mean = total / np.maximum(won.sum(axis=0), 1)
    name = steps[0][0] if len(steps) == 1 else policy.rule
    limit = _limit(policy, steps[0][0])
    decisions.put(rows[settled], mean[settled], (yes > no)[settled], name, limit)
    _unreadable(policy, rows[complete & (yes + no == 0)], decisions)


def _want(decisions: PolicyDecisions, name: str, rows: Any) -> None:
    if len(rows):
        decisions.wanted.setdefault(name, []).append(rows)


def _unreadable(policy: Policy, rows: Any, decisions: PolicyDecisions) -> None:
    score = 0.0 if policy.unreadable == "incorrect" else np.nan
    decisions.put(rows, score, False, UNREADABLE, _limit(policy, UNREADABLE))


def apply_people(matrix: VerdictMatrix, decisions: PolicyDecisions) -> None:
    """People decide over everyone; when they are split, the label is undecided."""
    decisions.by_person = np.zeros(len(matrix.pair), bool)
    people = [at for at, name in enumerate(matrix.scorers) if name.startswith("human:")]
    if not people:
        return
    yes = (matrix.outcome[people] == CORRECT).sum(axis=0)
    no = (matrix.outcome[people] == INCORRECT).sum(axis=0)
    decisions.contested |= (yes > 0) & (no > 0)
    split = np.flatnonzero((yes > 0) & (yes == no))
    decisions.score[split], decisions.by[split], decisions.correct[split] = np.nan, -1, False
    open_ = yes != no
    decisions.by_person = yes + no > 0
    for at in people:
        agrees = matrix.outcome[at] == np.where(yes > no, CORRECT, INCORRECT)
        rows = np.flatnonzero(open_ & agrees)
        correct = (yes > no)[rows]
        decisions.put(rows, correct.astype(float), correct, matrix.scorers[at], np.nan)
        open_[rows] = False


def _limit(policy: Policy, scorer: str) -> float:
    if policy.threshold is not None:
        return policy.threshold
    if scorer in SCORERS.targets:
        own = SCORERS.get(scorer).threshold
        return float("nan") if own is None else float(own)
    return float("nan")
