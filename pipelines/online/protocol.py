"""A stream of questions, answered one by one by a router that sees only what it asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.online.learners import Learner


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
