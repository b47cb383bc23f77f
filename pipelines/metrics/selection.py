"""Selection rules: from scores and costs to choices, the same way for every router.

All take scores (n, m), which models are available for a query (n, m) - a model
without label or cost there cannot be judged, so it cannot be chosen - and `order`
(m,), the models as `matrix.ranking.ranked` gives them on the train questions: the
first of it wins a tie. Those that weigh cost take what a router can know
beforehand (m,), the mean over the train questions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.matrix.memmap import allocate, blocks
from routeyard.pipelines.matrix.row_blocks import by_rows

Floats = NDArray[np.float64]
Choice = NDArray[np.int64]
Order = NDArray[np.int64]
#: (n, k) one choice per setting of a sweep: narrow, since there are many.
Choices = NDArray[np.int16]


def scaled(costs: Floats) -> Floats:
    """Min-max scaling to [0, 1]; all zeros when every cost is the same."""
    low, high = np.nanmin(costs), np.nanmax(costs)
    return np.zeros_like(costs) if high <= low else (costs - low) / (high - low)


def penalties(points: int = 100) -> Floats:
    """Weights of cost from 1 (cheapest model) down to 0 (cost does not matter).

    λ/(1−λ) runs geometrically from 1000 to 0.001, since useful trade-offs lie
    close together near both ends.
    """
    ratio = np.geomspace(1e3, 1e-3, points - 2)
    return np.concatenate([[1.0], ratio / (1 + ratio), [0.0]])


def best(scores: Floats, available: NDArray[np.bool_], order: Order) -> Choice:
    """(n,) model with the highest score among those available.

    >>> best(np.array([[0.5, 0.5, 0.4]]), np.ones((1, 3), bool), np.array([2, 1, 0]))
    array([1])
    """

    def work(score: Floats, can: NDArray[np.bool_]) -> Choice:
        return np.asarray(order[np.argmax(np.where(can, score, -np.inf)[:, order], axis=1)])

    return np.asarray(by_rows(work, scores, available))


def cost_penalised(
    scores: Floats, available: NDArray[np.bool_], cost: Floats, weights: Floats, order: Order
) -> Choices:
    """(n, k) argmax of (1−λ)·score − λ·ĉ for every λ in `weights`, ĉ min-max scaled.

    The sweep behind a deferral curve: Jitkrittum et al., Universal Model
    Routing (arXiv 2502.08773), the cost-adjusted rule argmin loss + λ·cost,
    here in the convex form so that λ = 1 is the cheapest model.

    >>> s, c, can = np.array([[0.9, 0.6]]), np.array([1.0, 0.0]), np.ones((1, 2), bool)
    >>> cost_penalised(s, can, c, np.array([1.0, 0.5, 0.1]), np.array([0, 1])).tolist()
    [[1, 1, 0]]
    """
    price = scaled(cost)[order]
    out = allocate((len(scores), len(weights)), np.int16)
    for rows in blocks(len(scores)):
        masked = np.where(available[rows], scores[rows], -np.inf)[:, order]
        value = np.empty_like(masked)
        for k, weight in enumerate(weights):
            if weight < 1:
                np.multiply(masked, 1 - weight, out=value)
                value -= weight * price
            else:
                value[:] = np.where(masked > -np.inf, -price, -np.inf)
            out[rows, k] = order[np.argmax(value, axis=1)]
    return out


def within_budget(
    scores: Floats, available: NDArray[np.bool_], cost: Floats, budgets: Floats, order: Order
) -> Choices:
    """(n, k) highest-scoring model among those whose mean cost is within each budget.

    Where no available model is, the cheapest available one is taken.

    >>> s, c, can = np.array([[0.9, 0.6]]), np.array([5.0, 1.0]), np.ones((1, 2), bool)
    >>> within_budget(s, can, c, np.array([0.5, 1.0, 5.0]), np.array([0, 1])).tolist()
    [[1, 1, 0]]
    """
    price = cost[order]
    affordable = np.searchsorted(np.sort(price), budgets, side="right")
    by_cost = np.argsort(price, kind="stable")
    out = allocate((len(scores), len(budgets)), np.int16)
    for rows in blocks(len(scores)):
        masked = np.where(available[rows], scores[rows], -np.inf)[:, order]
        cheapest = by_cost[np.argmax(masked[:, by_cost] > -np.inf, axis=1)]
        seen: dict[int, Choice] = {0: cheapest}
        for k, first in enumerate(affordable.tolist()):
            if first not in seen:
                within = np.sort(by_cost[:first])
                some = masked[:, within]
                none = np.all(some == -np.inf, axis=1)
                seen[first] = np.where(none, cheapest, within[np.argmax(some, axis=1)])
            out[rows, k] = order[seen[first]]
    return out


def at_choice(values: Floats, choice: Choice | Choices) -> Floats:
    """values (n, m) at choice (n,) or (n, k), in the shape of `choice`."""
    if choice.ndim == 1:
        return np.asarray(values[np.arange(len(values)), choice])
    return np.asarray(
        by_rows(lambda some, who: np.take_along_axis(some, who, axis=1), values, choice)
    )
