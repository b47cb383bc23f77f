"""Decisions of a policy on responses: its steps, escalation, votes, and people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from routeyard.pipelines.label.dawid_skene import dawid_skene
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
from routeyard.schemas.statuses import NO_CREDIT, STATUSES

#: Probability that a label of `dawid_skene` has to exceed: twice that of the other.
_SURE = 2 / 3
#: `decided_by` of a response that every scorer abstained on and whose status decides nothing.
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
    if scorer != GIVEN and GIVEN in matrix.scorers:
        at = matrix.scorers.index(GIVEN)
        graded = outcome[at] != MISSING
        if trusts_grades(policy):
            # A model's grades are its labels; what its source left ungraded stays undecided.
            model = matrix.model[matrix.pair[rows]]
            settled = np.isin(model, model[graded])
        else:
            # A stored score without any text has only the score its source carries.
            rule = steps and steps[0][0] == scorer
            settled = graded & (steps[0][1] == MISSING) if rule else np.zeros(len(rows), bool)
        given = rows[graded & settled]
        decisions.put(
            given,
            score[at][graded & settled],
            outcome[at][graded & settled] == CORRECT,
            GIVEN,
            _limit(policy, GIVEN),
        )
        steps = [(name, said[~settled], value[~settled]) for name, said, value in steps]
        rows = rows[~settled]
    if not steps or not len(rows):
        return
    if policy.rule == "escalate":
        unread = _escalate(policy, scorer, steps, rows, decisions)
    else:
        unread = _vote(policy, steps, rows, decisions)
    _unreadable(policy, matrix.status[unread], unread, decisions)


def trusts_grades(policy: Policy) -> bool:
    """Whether a recording's own grades are the labels, whatever a rule reads.

    A policy that lists `given` among its steps has decided when they count.
    """
    return policy.trust != "rules" and GIVEN not in policy.then


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
) -> Any:
    """Decide the rows that a step decides; those that no scorer could read are returned."""
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
    return rows[held & (last == -1)]


def escalates_on(scorer: str) -> str:
    return SCORERS.get(scorer).escalate_on if scorer in SCORERS.targets else "abstain"


def _vote(
    policy: Policy, steps: list[tuple[str, Any, Any]], rows: Any, decisions: PolicyDecisions
) -> Any:
    """The same by votes."""
    for name, said, _ in steps:
        _want(decisions, name, rows[(said == ERROR) | (said == MISSING)])
    outcome = np.stack([said for _, said, _ in steps])
    score = np.stack([value for _, _, value in steps])
    complete = ~((outcome == ERROR) | (outcome == MISSING)).any(axis=0)
    yes, no = (outcome == CORRECT).sum(axis=0), (outcome == INCORRECT).sum(axis=0)
    if policy.rule == "dawid_skene":
        return _weigh(policy, steps, rows, np.where(complete, outcome, MISSING), decisions)
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
    return rows[complete & (yes + no == 0)]


def _weigh(
    policy: Policy, steps: list[tuple[str, Any, Any]], rows: Any, outcome: Any, decisions: Any
) -> Any:
    """The same by votes that are weighed by each scorer's estimated errors."""
    complete = (outcome != MISSING).all(axis=0)
    code = np.select([outcome == CORRECT, outcome == INCORRECT], [1, 2], 0)[:, complete]
    chance = np.full(len(rows), 0.5)
    chance[complete] = dawid_skene(code)
    read = complete & ((outcome == CORRECT) | (outcome == INCORRECT)).any(axis=0)
    settled = read & (np.abs(chance - 0.5) > _SURE - 0.5)
    right = chance[settled] > 0.5
    limit = _limit(policy, steps[0][0])
    decisions.put(rows[settled], right.astype(float), right, policy.rule, limit)
    return rows[complete & ~read]


def _want(decisions: PolicyDecisions, name: str, rows: Any) -> None:
    if len(rows):
        decisions.wanted.setdefault(name, []).append(rows)


def _unreadable(policy: Policy, status: Any, rows: Any, decisions: PolicyDecisions) -> None:
    """Label answers that every scorer abstained on: by their status, else as the policy says."""
    limit = _limit(policy, UNREADABLE)
    if policy.unreadable == "incorrect":
        decisions.put(rows, 0.0, False, UNREADABLE, limit)
        return
    for name in NO_CREDIT:
        here = rows[status == STATUSES.index(name)]
        if len(here):
            decisions.put(here, 0.0, False, name, limit)
    open_ = rows[~np.isin(status, [STATUSES.index(name) for name in NO_CREDIT])]
    if len(open_):
        decisions.put(open_, np.nan, False, UNREADABLE, limit)


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
