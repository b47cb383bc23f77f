"""Whether switches away from a submission's habits are right more often than skill explains.

A router that has not seen the labels is about as right, against its own habit, where it leaves it
as where the habit lies: its gain by leaving cannot be nearly the whole of what there is to gain.
Choices that were swapped to right answers afterwards are right nearly always, and never wrong
where the habit was right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Choices = NDArray[np.int64]

#: Switches below which nothing is said, p-value of a finding, and share of the switches of which
#: the choice is right where the habit is wrong, from which no skill explains it.
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


@dataclass(frozen=True)
class Changed:
    """Choices that differ between two submissions, where exactly one of them is right.

    Attributes:
        changed: questions with another choice.
        gained, lost: of these, wrong before and right now, and the reverse.
        p: chance of so many gains if gains and losses were as likely (sign test).
    """

    changed: int
    gained: int
    lost: int
    p: float

    @property
    def fails(self) -> bool:
        """Whether the changes go to right answers as no retraining makes them."""
        told = self.gained + self.lost
        return told >= FEWEST and self.p < LEVEL and self.gained >= SHARE * told


def changed(labels: Floats, before: Choices, now: Choices) -> Changed:
    """Compare the choices of two submissions of one team for the same questions."""
    from scipy.stats import binom

    rows = np.arange(len(now))
    old, new = labels[rows, before] >= 0.5, labels[rows, now] >= 0.5
    known = ~np.isnan(labels[rows, before]) & ~np.isnan(labels[rows, now]) & (before != now)
    gained, lost = int(np.sum(known & new & ~old)), int(np.sum(known & old & ~new))
    p = float(binom.sf(gained - 1, gained + lost, 0.5)) if gained + lost else 1.0
    return Changed(int(np.sum(before != now)), gained, lost, p)
