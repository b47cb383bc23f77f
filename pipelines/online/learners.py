"""Routers that learn from the answers they asked for: bandits, and a cascade with a check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.routers.linear.linear_arms import LinearArms


class Learner(Protocol):
    """A router over a stream of m arms, of which some are open at a time."""

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        """The arm to ask; None to keep the last answer.

        Args:
            x: (d,) features of the question.
            open_arms: Numbers of the arms that can be asked now.
            asked: (arm, whether the check accepted its answer) of this question so far; none at
                first, when an arm has to be given.
        """

    def learn(self, x: Floats, arm: int, right: float, cost: float) -> None:
        """What one answer was worth: its score, and its cost in units of a right answer."""


class Uniform:
    """Any open arm, with the same chance."""

    def __init__(self, arms: int, features: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        return None if asked else int(self._random.choice(open_arms))

    def learn(self, x: Floats, arm: int, right: float, cost: float) -> None:
        pass


class _Means:
    """Answers, scores and costs of each arm so far."""

    def __init__(self, arms: int) -> None:
        self.count, self.right, self.cost = np.zeros(arms), np.zeros(arms), np.zeros(arms)

    def learn(self, x: Floats, arm: int, right: float, cost: float) -> None:
        self.count[arm] += 1
        self.right[arm] += right
        self.cost[arm] += cost

    def mean_cost(self) -> Floats:
        """(m,) mean cost; of arms that were not asked, 0: they are tried."""
        return np.asarray(self.cost / np.maximum(self.count, 1))


class EpsilonGreedy(_Means):
    """The open arm of the best mean so far; with chance ε_t = min(1, 5m/t) any (Auer et al. 2002,
    with their c/d² taken as 5)."""

    def __init__(self, arms: int, features: int, seed: int) -> None:
        super().__init__(arms)
        self._random, self._step = np.random.default_rng(seed), 0

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        if asked:
            return None
        self._step += 1
        # An arm that has just appeared has no mean: it is tried first.
        new = open_arms[self.count[open_arms] == 0]
        if len(new):
            return int(self._random.choice(new))
        if self._random.random() < min(1.0, 5 * len(open_arms) / self._step):
            return int(self._random.choice(open_arms))
        mean = self.right / np.maximum(self.count, 1) - self.mean_cost()
        return int(open_arms[np.argmax(mean[open_arms])])


class BetaBandit(_Means):
    """Beta(1 + hits, 1 + misses) of each open arm, drawn anew, less mean cost (Thompson 1933)."""

    def __init__(self, arms: int, features: int, seed: int) -> None:
        super().__init__(arms)
        self._random = np.random.default_rng(seed)

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        if asked:
            return None
        hits = self.right[open_arms]
        drawn = self._random.beta(1 + hits, 1 + self.count[open_arms] - hits)
        return int(open_arms[np.argmax(drawn - self.mean_cost()[open_arms])])


class LinUcb:
    """Disjoint LinUCB on the question's features (Li et al., WWW 2010); rewards less costs."""

    def __init__(self, arms: int, features: int, seed: int) -> None:
        self._arms = LinearArms(arms, features)
        # Arms that were never chosen have one bound: they are tried in a drawn order.
        self._order = np.random.default_rng(seed).permutation(arms)

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        if asked:
            return None
        order = self._order[np.isin(self._order, open_arms)]
        return int(order[np.argmax(self._arms.bounds(x, ALPHA)[order])])

    def learn(self, x: Floats, arm: int, right: float, cost: float) -> None:
        self._arms.learn(x, arm, right - cost)


class CheckedCascade(_Means):
    """Open arms from cheap to dear until the check accepts an answer.

    A further arm is asked only where the chance that it is right, Beta(1, 1) before it was ever
    asked, is worth more than its cost. Arms whose cost is unknown are tried when they appear.
    """

    def __init__(self, arms: int, features: int, seed: int) -> None:
        super().__init__(arms)

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        if asked and asked[-1][1]:
            return None
        tried = {arm for arm, _ in asked}
        cost, chance = self.mean_cost(), (1 + self.right) / (2 + self.count)
        left = [arm for arm in open_arms.tolist() if arm not in tried]
        worth = [arm for arm in left if not asked or chance[arm] > cost[arm]]
        return min(worth, key=lambda arm: (cost[arm], arm), default=None)


#: Weight of LinUCB's uncertainty. With 1 an arm that was never asked has a bound of at least 1, the
#: best there is (features hold a constant): one that appears is tried.
ALPHA = 1.0
#: Name → (number of arms, number of features, seed) → learner.
LEARNERS: dict[str, Callable[[int, int, int], Learner]] = {
    "random": Uniform,
    "epsilon-greedy": EpsilonGreedy,
    "thompson": BetaBandit,
    "linucb": LinUcb,
    "cascade": CheckedCascade,
}
