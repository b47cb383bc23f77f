"""Routers over a stream: they choose, see what their choice gave, and choose again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from routeyard.pipelines.common.arrays import Bools, Floats, Ints
from routeyard.pipelines.routers.linear import LinearArms
from routeyard.schemas.errors import BadInput

# Routers that learn from the answers they asked for: bandits, and a cascade with a check.


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


# A stream of questions, answered one by one by a router that sees only what it asked for.


@dataclass(frozen=True, eq=False)
class StreamOfArms:
    """n questions in the order they come, and m arms.

    Attributes:
        features: (n, d).
        right: (n, m) scores of all answers, of which a router sees those it asks for.
        cost: (n, m) costs of all answers.
        open: (n, m) which arms can be asked when a question comes; at least one.
        accepted: (n, m) what a check says of each answer.
        price: Right answers that a unit of cost is worth; 0 where costs do not count.
    """

    features: Floats
    right: Floats
    cost: Floats
    open: Bools
    accepted: Bools
    price: float = 0.0

    @property
    def worth(self) -> Floats:
        """(n, m) score less cost of each arm that is open, in right answers; −∞ of the others."""
        return np.where(self.open, self.right - self.price * self.cost, -np.inf)

    def periods(self) -> list[tuple[int, int]]:
        """(first question, one past the last) of stretches in which the same arms are open."""
        changed = np.flatnonzero((self.open[1:] != self.open[:-1]).any(axis=1)) + 1
        edges = [0, *changed.tolist(), len(self.open)]
        return list(pairwise(edges))

    def best_fixed(self) -> Served:
        """The best single arm of each period, known in hindsight.

        With arms that come and go no single arm is always there: the comparator is the one that a
        person who knew each period's mean would have set for it.
        """
        worth = self.worth
        arms = [np.argmax(worth[start:end].sum(axis=0)) for start, end in self.periods()]
        lengths = [end - start for start, end in self.periods()]
        return self._always(np.repeat(arms, lengths))

    def oracle(self) -> Served:
        """The best open arm of each question."""
        return self._always(np.argmax(self.worth, axis=1))

    def _always(self, choice: Ints) -> Served:
        rows = np.arange(len(choice))
        one = np.ones(len(choice), np.int64)
        return Served(choice, one, self.right[rows, choice], self.cost[rows, choice])


@dataclass(frozen=True, eq=False)
class Served:
    """What a router did with a stream.

    Attributes:
        choice: (n,) arm whose answer was given.
        calls: (n,) answers that were asked for, all of them paid.
        score, cost: (n,) score of the given answer, and cost of all.
    """

    choice: Ints
    calls: Ints
    score: Floats
    cost: Floats

    def worth(self, price: float) -> Floats:
        """(n,) score less cost, in right answers."""
        return np.asarray(self.score - price * self.cost)


def serve(stream: StreamOfArms, learner: Learner) -> Served:
    """Give every question to the router, step by step, in order.

    It asks an arm, hears what a check says of the answer, and may ask another; then it learns the
    score and cost of each answer it asked for, and of no other.

    Raises:
        BadInput: the router asks an arm that is not open, asks one twice, or none.
    """
    n = len(stream.open)
    choice, calls, cost = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
    for row in range(n):
        x, open_arms = stream.features[row], np.flatnonzero(stream.open[row])
        asked: list[tuple[int, bool]] = []
        while (arm := learner.next(x, open_arms, asked)) is not None:
            if not stream.open[row, arm] or any(arm == one for one, _ in asked):
                raise BadInput(f"the router asks arm {arm}, which it asked before or is not open")
            asked.append((arm, bool(stream.accepted[row, arm])))
        if not asked:
            raise BadInput("the router asks no arm", where=f"question {row} of the stream")
        for arm, _ in asked:
            paid = stream.price * float(stream.cost[row, arm])
            learner.learn(x, arm, float(stream.right[row, arm]), paid)
        arms = [arm for arm, _ in asked]
        choice[row], calls[row], cost[row] = arms[-1], len(arms), stream.cost[row, arms].sum()
    return Served(choice, calls, stream.right[np.arange(n), choice], cost)


def opened(
    n: int, names: tuple[str, ...], appear: Mapping[str, float], retire: Mapping[str, float]
) -> Bools:
    """(n, m) which arms are open, from shares of the stream after which they come and go.

    Raises:
        BadInput: an arm is unknown, a share is not between 0 and 1, or at some time no arm is open.
    """
    found = np.ones((n, len(names)), dtype=bool)
    for given, comes in ((appear, True), (retire, False)):
        for name, share in given.items():
            if name not in names:
                raise BadInput(f"there is no arm {name!r}", next_step=f"known: {', '.join(names)}")
            if not 0 <= share <= 1:
                raise BadInput(f"{name}={share:g} is no share of the stream, from 0 to 1")
            at = round(share * n)
            found[slice(0, at) if comes else slice(at, n), names.index(name)] = False
    if not found.any(axis=1).all():
        raise BadInput("at some time no arm is open", next_step="let another one stay")
    return found


def orders(n: int, count: int, seed: int) -> list[Ints]:
    """Orders in which n questions come."""
    random = np.random.default_rng(seed)
    return [random.permutation(n) for _ in range(count)]
