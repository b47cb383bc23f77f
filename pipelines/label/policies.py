"""Decisions of a policy on responses: its steps, escalation, votes, and people."""

from __future__ import annotations

from collections.abc import Sequence
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


class PolicyDecisions:
    """What became of each response.

    score: float64, NaN while undecided. correct: bool. by: index into `names`,
    -1 while undecided. threshold: NaN where neither policy nor scorer sets one.
    contested: bool. wanted: rows on which a scorer is needed and has given no verdict.
    by_person: bool.
    """

    def __init__(self, n: int) -> None:
        self.score, self.threshold = np.full((2, n), np.nan)
        self.correct, self.contested, self.by_person = np.zeros((3, n), bool)
        self.by = np.full(n, -1, np.int64)
        self.names: list[str] = []
        self.wanted: dict[str, list[Any]] = {}

    def put(self, rows: Any, score: Any, correct: Any, by: str, threshold: float) -> None:
        if by not in self.names:
            self.names.append(by)
        self.score[rows] = score
        self.correct[rows] = correct
        self.by[rows] = self.names.index(by)
        self.threshold[rows] = threshold

    def want(self, name: str, rows: Any) -> None:
        if len(rows):
            self.wanted.setdefault(name, []).append(rows)


def apply_policy(
    matrix: VerdictMatrix,
    policy: Policy,
    scorer: str,
    rows: Any,
    decisions: PolicyDecisions,
    defined: Sequence[str] = (),
) -> None:
    """Decide `rows`, which share task policy and rule scorer.

    Args:
        defined: Verifiers and judges that the recipe names.
    """
    outcome, score = matrix.outcome[:, rows], matrix.score[:, rows]
    if policy.threshold is not None:
        reached = np.where(score >= policy.threshold, CORRECT, INCORRECT)
        outcome = np.where(_decides(outcome), reached, outcome).astype(np.int8)
    yes, no = (outcome == CORRECT).any(axis=0), (outcome == INCORRECT).any(axis=0)
    decisions.contested[rows] = (yes & no) | matrix.conflict[rows]

    names = _steps({*matrix.scorers, *defined}, policy, scorer)
    place = {name: at for at, name in enumerate(matrix.scorers)}
    steps = np.array([place.get(name, -1) for name in names], np.int64)
    if scorer != GIVEN and GIVEN in place:
        grade, unread = outcome[place[GIVEN]], outcome[place.get(scorer, -1)] == MISSING
        graded = grade != MISSING
        # A stored score without any text has only the score its source carries.
        settled = graded & unread & (scorer != NO_RULE)
        if trusts_grades(policy):
            # A model's grades are its labels; what its source left ungraded stays undecided.
            model = matrix.model[matrix.pair[rows]]
            settled = np.isin(model, model[graded])
        given, limit = graded & settled, _limit(policy, GIVEN)
        right = grade[given] == CORRECT
        decisions.put(rows[given], score[place[GIVEN], given], right, GIVEN, limit)
        outcome, score, rows = outcome[:, ~settled], score[:, ~settled], rows[~settled]
    if not names or not len(rows):
        return
    decide = _escalate if policy.rule == "escalate" else _vote
    unread = rows[decide(policy, scorer, names, outcome[steps], score[steps], rows, decisions)]
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


def _decides(outcome: Any) -> Any:
    return (outcome == CORRECT) | (outcome == INCORRECT)


def _failed(outcome: Any) -> Any:
    return (outcome == ERROR) | (outcome == MISSING)


def _escalate(
    policy: Policy,
    scorer: str,
    names: list[str],
    outcome: Any,
    score: Any,
    rows: Any,
    decisions: PolicyDecisions,
) -> Any:
    """Decide the rows that a step decides; which of them no scorer could read is returned."""
    on = policy.escalate_on or escalates_on(scorer)
    passing = (ABSTAIN, INCORRECT) if on == "not_correct" else (ABSTAIN,)
    here = np.ones(len(rows), bool)  # still going up
    held = here.copy()  # no step failed on the way
    last = np.full(len(rows), -1)  # the last step that said anything
    for at, name in enumerate(names):
        failed = here & _failed(outcome[at])
        decisions.want(name, rows[failed])
        held &= ~failed
        last[here & _decides(outcome[at])] = at
        here &= np.isin(outcome[at], passing)
    for at, name in enumerate(names):
        decided, limit = held & (last == at), _limit(policy, name)
        right = outcome[at, decided] == CORRECT
        decisions.put(rows[decided], score[at, decided], right, name, limit)
    return held & (last == -1)


def escalates_on(scorer: str) -> str:
    return SCORERS.get(scorer).escalate_on if scorer in SCORERS.targets else "abstain"


def _vote(
    policy: Policy,
    scorer: str,
    names: list[str],
    outcome: Any,
    score: Any,
    rows: Any,
    decisions: PolicyDecisions,
) -> Any:
    """The same by votes: counted, or weighed by each scorer's estimated errors."""
    for name, said in zip(names, outcome, strict=True):
        decisions.want(name, rows[_failed(said)])
    complete = ~_failed(outcome).any(axis=0)
    yes, no = (outcome == CORRECT).sum(axis=0), (outcome == INCORRECT).sum(axis=0)
    read = complete & (yes + no > 0)
    by = names[0] if len(names) == 1 and policy.rule != "dawid_skene" else policy.rule
    if policy.rule == "dawid_skene":
        chance = np.full(len(rows), 0.5)
        chance[complete] = dawid_skene(np.where(_decides(outcome), outcome, 0)[:, complete])
        settled = read & (np.abs(chance - 0.5) > _SURE - 0.5)
        right = chance > 0.5
        mean = right.astype(float)
    else:
        settled = read & (yes != no)
        if policy.rule == "unanimous":
            settled &= (yes == 0) | (no == 0)
        right = yes > no
        won = outcome == np.where(right, CORRECT, INCORRECT)
        mean = np.where(won, score, 0.0).sum(axis=0) / np.maximum(won.sum(axis=0), 1)
    decisions.put(rows[settled], mean[settled], right[settled], by, _limit(policy, names[0]))
    return complete & ~read


def _unreadable(policy: Policy, status: Any, rows: Any, decisions: PolicyDecisions) -> None:
    """Label answers that every scorer abstained on: by their status, else as the policy says."""
    limit, wrong = _limit(policy, UNREADABLE), policy.unreadable == "incorrect"
    for code in np.unique(status).tolist():
        name = STATUSES[code] if STATUSES[code] in NO_CREDIT and not wrong else UNREADABLE
        score = np.nan if name == UNREADABLE and not wrong else 0.0
        decisions.put(rows[status == code], score, False, name, limit)


def apply_people(matrix: VerdictMatrix, decisions: PolicyDecisions) -> None:
    """People decide over everyone; when they are split, the label is undecided."""
    people = [at for at, name in enumerate(matrix.scorers) if name.startswith("human:")]
    yes = (matrix.outcome[people] == CORRECT).sum(axis=0)
    no = (matrix.outcome[people] == INCORRECT).sum(axis=0)
    decisions.by_person = yes + no > 0
    decisions.contested |= (yes > 0) & (no > 0)
    split = decisions.by_person & (yes == no)
    decisions.score[split], decisions.by[split], decisions.correct[split] = np.nan, -1, False
    for at in reversed(people):  # the first by name is who decided
        agrees = matrix.outcome[at] == np.where(yes > no, CORRECT, INCORRECT)
        rows = np.flatnonzero((yes != no) & agrees)
        right = (yes > no)[rows]
        decisions.put(rows, right.astype(float), right, matrix.scorers[at], np.nan)


def _limit(policy: Policy, scorer: str) -> float:
    if policy.threshold is not None:
        return policy.threshold
    own = SCORERS.get(scorer).threshold if scorer in SCORERS.targets else None
    return float("nan") if own is None else float(own)
