"""What a router is compared with: oracles, single models and random mixes.

Each gives, for one resample or all of them, a mean accuracy; the per-query
ones are plain columns for `Draws.means`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.selection import Choice, mean_costs

Floats = NDArray[np.float64]


def single_means(labels: Floats) -> Floats:
    """(m,) accuracy of every model over the queries it has a label for."""
    return mean_costs(labels)


def best_single(labels: Floats, cost: Floats | None = None) -> int:
    """The most accurate single model; ties go to the cheaper, then the first.

    >>> best_single(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([3.0, 2.0]))
    1
    """
    accuracy = single_means(labels)
    price = np.zeros(len(accuracy)) if cost is None else cost
    order = np.lexsort((np.arange(len(accuracy)), price, -np.nan_to_num(accuracy, nan=-1.0)))
    return int(order[0])


def query_oracle(labels: Floats, cost: Floats | None = None) -> Choice:
    """(n,) the best model on each query, the cheapest of them: upper limit of any router.

    Args:
        cost: (n, m) what each answer did cost, or None.
    """
    y = np.where(np.isnan(labels), -np.inf, labels)
    top = y == y.max(axis=1, keepdims=True)
    price = np.zeros_like(labels) if cost is None else np.where(np.isnan(cost), np.inf, cost)
    # Two keys: among the best, the cheapest; an unknown price is still among the best.
    return np.asarray(
        np.argmin(np.where(top, np.where(np.isinf(price), 1e300, price), np.inf), axis=1)
    )


def task_oracle(labels: Floats, tasks: NDArray[np.str_], cost: Floats | None = None) -> Choice:
    """(n,) the best single model of each query's task, among those with a label there.

    Where the task's best model has no label on a query, its next best is taken.
    """
    out = np.zeros(len(labels), dtype=np.int64)
    for task in np.unique(tasks):
        at = np.flatnonzero(tasks == task)
        accuracy = np.nan_to_num(single_means(labels[at]), nan=-1.0)
        price = np.zeros(labels.shape[1]) if cost is None else cost
        order = np.lexsort((np.arange(len(accuracy)), price, -accuracy))
        known = ~np.isnan(labels[at][:, order])
        out[at] = order[np.argmax(known, axis=1)]
    return out


def random_mean(labels: Floats) -> Floats:
    """(n,) expected score of a model drawn uniformly among those with a label."""
    return mean_costs(labels.T)


def mix_frontier(cost: Floats, accuracy: Floats) -> tuple[Floats, Floats]:
    """Corners of the best random mixes of single models, cheapest first.

    A random mix of two models lies on the line between them, so the best mixes
    are the non-decreasing upper concave hull of the models' (cost, accuracy)
    points (RouterBench, Hu et al., arXiv 2403.12031, the Zero router).

    >>> mix_frontier(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.2, 0.3, 0.8, 0.7]))
    (array([1., 3.]), array([0.2, 0.8]))
    """
    order = np.lexsort((-accuracy, cost))
    hull: list[tuple[float, float]] = []
    for x, y in zip(cost[order].tolist(), accuracy[order].tolist(), strict=True):
        if hull and (x == hull[-1][0] or y <= hull[-1][1]):
            continue
        while len(hull) > 1 and _below(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return np.array([x for x, _ in hull]), np.array([y for _, y in hull])


def _below(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies on or below the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def mix_weights(cost: Floats, accuracy: Floats, budget: float) -> Floats:
    """(m,) probabilities of the best random mix of single models at a mean cost.

    Below the cheapest model the cheapest is taken; past the last corner, the last.

    >>> mix_weights(np.array([1.0, 3.0]), np.array([0.2, 0.8]), 2.0)
    array([0.5, 0.5])
    """
    xs, ys = mix_frontier(cost, accuracy)
    corner = [
        int(np.flatnonzero((cost == x) & (accuracy == y))[0]) for x, y in zip(xs, ys, strict=True)
    ]
    weights = np.zeros(len(cost))
    if budget <= xs[0]:
        weights[corner[0]] = 1.0
    elif budget >= xs[-1]:
        weights[corner[-1]] = 1.0
    else:
        right = int(np.searchsorted(xs, budget, side="right"))
        share = (budget - xs[right - 1]) / (xs[right] - xs[right - 1])
        weights[corner[right]] = share
        weights[corner[right - 1]] += 1 - share
    return weights
