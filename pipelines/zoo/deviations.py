"""Whether switches away from a submission's habits are right more often than skill explains.

A router that has not seen the labels is about as right, against its own habit, where it leaves it
as where it keeps it: its gain by leaving cannot be nearly the whole of what there is to gain.
Choices that were swapped to right answers afterwards are right nearly always, and never wrong
where the habit was right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Choices = NDArray[np.int64]

#: Switches below which nothing is reported, p-value of a finding, and share of the switches of
#: which the choice is right where the habit is wrong, from which no skill explains it.
FEWEST, LEVEL, SHARE = 20, 1e-4, 0.9


@dataclass(frozen=True)
class Deviations:
    """Switches away from the habit, among those where exactly one of the two is right.

    Attributes:
        switches: questions on which another model than the habitual one was chosen.
        told: of these, the questions on which one of the two is right and the other wrong.
        won: of these, the ones on which the choice is right.
        expected: share that `others` win: models that were chosen neither there nor by habit.
        p: chance of as many, if switches win as often as the strongest of the other models would.
        q: `p` times the habits that were tried (Bonferroni).
    """

    switches: int
    told: int
    won: int
    expected: float
    p: float
    q: float

    @property
    def fails(self) -> bool:
        """Whether it cannot be accepted."""
        return self.told >= FEWEST and self.q < LEVEL and self.won >= SHARE * self.told


def deviations(labels: Floats, choice: Choices, groups: NDArray[np.str_]) -> Deviations:
    """Test switches against the habit: the model that a submission chooses most, in each group.

    Under the null hypothesis a switch goes to a model by what the question looks like. It then
    wins, of the questions on which habit and choice differ in being right, about as often as the
    chosen model does on questions where the habit was kept (`untouched`): that is the router's own
    skill. The p-value is the upper tail of the binomial at that rate, raised by its standard error
    of two, and at least at the rate at which the best other model of each group would win.

    Args:
        labels: (n, m) scores; NaN is not known.
        choice: (n,) model chosen.
        groups: (n,) task of each question.
    """
    from scipy.stats import binom

    n = len(choice)
    habit = np.empty(n, np.int64)
    for name in np.unique(groups):
        own = groups == name
        habit[own] = np.bincount(choice[own], minlength=labels.shape[1]).argmax()
    rows = np.arange(n)
    right = np.where(np.isnan(labels), np.nan, labels >= 0.5)
    mine, usual = right[rows, choice], right[rows, habit]
    away = choice != habit
    told = away & ~np.isnan(mine) & ~np.isnan(usual) & (mine != usual)
    won = int(mine[told].sum())
    expected = _skill(right, choice, habit, away)
    total = int(told.sum())
    p = float(binom.sf(won - 1, total, expected)) if total else 1.0
    tried = max(1, len(np.unique(habit)))
    return Deviations(int(away.sum()), total, won, expected, p, min(1.0, p * tried))


def _skill(right: Floats, choice: Choices, habit: Choices, away: NDArray[np.bool_]) -> float:
    """Share of differing questions that the chosen models win on questions left to the habit."""
    wins = number = 0.0
    kept = np.flatnonzero(~away)
    chosen, weight = np.unique(choice[away], return_counts=True)
    usual = right[kept, habit[kept]]
    for model, times in zip(chosen, weight, strict=True):
        other = right[kept, model]
        told = ~np.isnan(other) & ~np.isnan(usual) & (other != usual)
        # Laplace's rule, and two standard errors in the submission's favour.
        rate = (other[told].sum() + 1) / (told.sum() + 2)
        rate = min(0.85, rate + 2 * np.sqrt(rate * (1 - rate) / (told.sum() + 2)))
        wins, number = wins + times * rate, number + times
    return float(wins / number) if number else 0.5


#: Changes below which nothing is reported; what honest skill may add to the rate that train
#: questions lead to expect, in log-odds, and the level of that test; the share of gains from which
#: skill is no excuse, and the level there. Of 14,400 pairs of honest routers on eight matrices,
#: four of them never looked at before, none fails (`python -m benchmarks audit --resubmitted 20`).
_CHANGES, _SKILL, _RARE, _NEARLY_ALL, _RAREST = 15, 1.5, 1e-3, 0.8, 1e-4


@dataclass(frozen=True)
class Changed:
    """Choices that differ between two submissions, and what an honest new router would gain.

    Attributes:
        changed: questions with another choice.
        known: of these, the ones with labels of both models.
        gained, lost: of the known, wrong before and right now, and the reverse.
        expected: share of the known that the same changes of model gain on train questions of
            the same tasks.
        p: chance of as many gains at that share, raised by what skill may add.
        fails: Whether the changes go to right answers as nothing learned from train makes them.
    """

    changed: int
    known: int
    gained: int
    lost: int
    expected: float
    p: float
    fails: bool


def changed(
    labels: Floats,
    before: Choices,
    now: Choices,
    tasks: NDArray[np.str_],
    train: Floats,
    train_tasks: NDArray[np.str_],
) -> Changed:
    """Compare the choices of two submissions of one team for the same questions.

    Who changed choices after a look at the labels leaves one model where it is wrong, for one that
    is right. A better router leaves it on questions that look like failures: where the old model
    was right too, or the new one is wrong, it does not know. How often a change from one model to
    another gains is read off train questions of the task (a new router that always asks a better
    model gains much, and as expected).

    Args:
        labels: (n, m) scores; NaN is not known.
        before, now: (n,) model chosen.
        tasks: (n,) task of each question.
        train, train_tasks: The same of questions whose labels the team has.
    """
    from scipy.stats import binom

    rows = np.arange(len(now))
    old, new = labels[rows, before], labels[rows, now]
    known = ~np.isnan(old) & ~np.isnan(new) & (before != now)
    gained = int(np.sum(known & (new >= 0.5) & (old < 0.5)))
    lost = int(np.sum(known & (old >= 0.5) & (new < 0.5)))
    n = int(known.sum())
    if not n:
        return Changed(int(np.sum(before != now)), 0, 0, 0, 0.0, 1.0, False)
    rates = _gains(train, train_tasks, tasks[known], before[known], now[known])
    expected = min(0.98, max(0.02, float(rates.mean())))
    odds = expected / (1 - expected) * np.exp(_SKILL)
    p = float(binom.sf(gained - 1, n, odds / (1 + odds)))
    most = min(0.98, expected + 2 * np.sqrt(expected * (1 - expected) / n))
    nearly = gained >= _NEARLY_ALL * n and float(binom.sf(gained - 1, n, most)) < _RAREST
    fails = n >= _CHANGES and (p < _RARE or nearly)
    return Changed(int(np.sum(before != now)), n, gained, lost, expected, p, bool(fails))


def _gains(
    train: Floats,
    train_tasks: NDArray[np.str_],
    tasks: NDArray[np.str_],
    before: Choices,
    now: Choices,
) -> Floats:
    """(n,) share of train questions of the task on which the change goes from wrong to right.

    Few questions of a task are filled up with five of all tasks at their share.
    """
    found: dict[tuple[str, int, int], float] = {}
    keys = [(str(t), int(a), int(b)) for t, a, b in zip(tasks, before, now, strict=True)]
    for key in keys:
        if key not in found:
            task, a, b = key
            known = ~np.isnan(train[:, a]) & ~np.isnan(train[:, b])
            gain = known & (train[:, a] < 0.5) & (train[:, b] >= 0.5)
            overall = (gain.sum() + 0.5) / (known.sum() + 1)
            own = train_tasks == task
            found[key] = float((gain[own].sum() + 5 * overall) / (known[own].sum() + 5))
    return np.array([found[key] for key in keys])
