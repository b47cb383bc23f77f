"""Cascades: ask a model, look at its answer, and ask a dearer one where it is not accepted.

Two kinds, on outcomes that are known of every model, with every answer that was asked paid for:

* FrugalGPT's (arXiv 2305.05176): a list of at most three models, dearer each time, and
  a threshold on what an answer shows of itself (`margin`, `self_assessment`, …) for each but the
  last; list and thresholds are those with the best train accuracy within a budget.
* verified: an answer is accepted where it is right, as tests of a program or a checker of
  results tell. No router knows that beforehand: it is what verifying is worth, and its limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.matrix.examples import Examples
from routeyard.pipelines.matrix.ranking import mean_costs, ranked

#: Most models of a list, models that lists are made of, and thresholds tried of each.
LONGEST, AMONG, THRESHOLDS = 3, 8, 9


@dataclass(frozen=True, eq=False)
class Ran:
    """A cascade on n questions.

    Attributes:
        choice: (n,) the model whose answer was accepted, or the last one.
        asked: (n,) number of models that were asked.
        cost: (n,) sum of the costs of all answers and checks.
        score: (n,) score of the accepted answer.
    """

    choice: Ints
    asked: Ints
    cost: Floats
    score: Floats


def run(
    order: Sequence[int], accept: Bools, labels: Floats, cost: Floats, check: float = 0.0
) -> Ran:
    """Ask the models in this order until one's answer is accepted.

    Args:
        order: positions of the k models.
        accept: (n, k) whether each answer would be accepted; the last always is.
        labels, cost: (n, m) scores and costs of all models, known where one is asked.
        check: cost of looking at one answer; the last is not looked at.

    >>> y, c = np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 5.0], [1.0, 5.0]])
    >>> done = run([0, 1], y > 0, y, c, check=0.5)
    >>> done.cost.tolist(), done.score.tolist(), done.asked.tolist()
    ([6.5, 1.5], [1.0, 1.0], [2, 1])
    """
    accept = accept.copy()
    accept[:, -1] = True
    at = np.argmax(accept, axis=1)
    rows, models = np.arange(len(labels)), np.asarray(order, dtype=np.int64)
    so_far = np.cumsum(cost[:, models], axis=1)
    checks = np.minimum(at + 1, len(models) - 1)
    choice = models[at]
    return Ran(choice, at + 1, so_far[rows, at] + check * checks, labels[rows, choice])


def cheapest_first(labels: Floats, cost: Floats) -> Ints:
    """(m,) models by mean cost; of equally cheap ones the better goes first (`ranked`).

    >>> cheapest_first(np.array([[0.0, 1.0, 1.0]]), np.array([[1.0, 1.0, 0.5]])).tolist()
    [2, 1, 0]
    """
    price = mean_costs(cost)
    first = ranked(labels, price)
    return np.asarray(first[np.argsort(price[first], kind="stable")])


def verified(labels: Floats, right: Floats, cost: Floats, order: Ints) -> Ran:
    """The cascade over models in this order that stops at the first right answer.

    Args:
        right: (n, m) 1 where an answer is right.
        order: (k,) `cheapest_first` of the train questions, as many as are asked.
    """
    return run(order.tolist(), right[:, order] == 1, labels, cost)


@dataclass(frozen=True)
class Frugal:
    """A fitted list: models in the order asked, and the least of a signal that is accepted."""

    order: tuple[int, ...]
    least: tuple[float, ...]
    check: float = 0.0

    def run(self, shown: Floats, labels: Floats, cost: Floats) -> Ran:
        """The cascade on questions; shown: (n, m) the signal, NaN where nothing is shown."""
        accept = shown[:, list(self.order)] >= np.array([*self.least, -np.inf])
        return run(self.order, accept, labels, cost, self.check)


def frugal(
    train: Examples, shown: Floats, measure: str, budgets: Floats, check: float = 0.0
) -> list[Frugal]:
    """For each budget the list with the best train accuracy whose mean train cost is within it;
    the cheapest model alone where none is.

    Lists are of the `AMONG` models that are best on train and the cheapest one, thresholds
    quantiles of what each shows.

    Raises:
        BadInput: a cost, a label or the signal is missing on train.
    """
    labels, cost = train.labels, train.costs[measure]
    if np.isnan(labels).any() or np.isnan(cost).any() or np.isnan(shown).any():
        raise BadInput(
            "a cascade is fitted on questions of which every model's answer, cost and signal "
            "is known",
            next_step="leave out the questions or the models that lack one",
        )
    by_price = cheapest_first(labels, cost)
    best = ranked(labels, mean_costs(cost))[: AMONG - 1].tolist()
    among = [m for m in by_price.tolist() if m in {*best, int(by_price[0])}]
    grid = np.linspace(0, 1, THRESHOLDS + 1)[1:]
    cuts = {m: np.unique(np.quantile(shown[:, m], grid)) for m in among}
    tried: list[tuple[float, float, Frugal]] = []
    for length in range(1, min(LONGEST, len(among)) + 1):
        for order in combinations(among, length):
            for least in product(*(cuts[m].tolist() for m in order[:-1])):
                one = Frugal(order, least, check)
                done = one.run(shown, labels, cost)
                tried.append((float(done.score.mean()), float(done.cost.mean()), one))
    alone = Frugal((int(by_price[0]),), (), check)
    found = []
    for budget in budgets:
        within = [(score, -paid, k) for k, (score, paid, _) in enumerate(tried) if paid <= budget]
        # Of equally good lists the cheaper, then the one that was tried first: the shorter.
        top = max(within, key=lambda one: (one[0], one[1], -one[2]), default=None)
        found.append(alone if top is None else tried[top[2]][2])
    return found


def surest(signals: Mapping[str, Floats]) -> dict[str, Floats]:
    """Signals that are known of every model on every question, each so that more is surer."""
    lower = ("entropy", "perplexity", "semantic_entropy")
    return {
        name: -values if name.startswith(lower) else values
        for name, values in signals.items()
        if not np.isnan(values).any()
    }
