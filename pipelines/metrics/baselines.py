"""What a router is compared with: oracles, single models and random mixes.

Each gives, for one resample or all of them, a mean accuracy; the per-query
ones are plain columns for `Draws.means`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.matrix.memmap import take_rows
from routeyard.pipelines.matrix.ranking import mean_costs, ranked
from routeyard.pipelines.matrix.row_blocks import by_rows, distinct, known
from routeyard.pipelines.metrics.selection import Choice, at_choice

Floats = NDArray[np.float64]


def best_single(labels: Floats, cost: Floats | None = None) -> int:
    """The most accurate single model on the same questions; ties go to the cheaper.

    >>> best_single(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([3.0, 2.0]))
    1
    >>> best_single(np.array([[1.0, 1.0], [0.0, np.nan], [1.0, np.nan], [1.0, 0.0]]))
    0
    """
    return int(ranked(labels, cost)[0])


def alone(available: NDArray[np.bool_], order: NDArray[np.int64]) -> Choice:
    """(n, m) who answers when only model k is asked: k, or where it cannot be judged the
    first in `order` that can.

    A router that always chooses k is measured the same way, so single models,
    routers and oracles are compared on the same questions.

    >>> alone(np.array([[True, True], [False, True]]), np.array([0, 1])).tolist()
    [[0, 1], [1, 1]]
    """

    def work(can: NDArray[np.bool_]) -> Choice:
        instead = order[np.argmax(can[:, order], axis=1)]
        return np.where(can, np.arange(can.shape[1]), instead[:, None])

    return np.asarray(by_rows(work, available))


def query_oracle(labels: Floats, cost: Floats | None = None) -> Choice:
    """(n,) the best model on each query, the cheapest of them: upper limit of any router.

    Args:
        cost: (n, m) what each answer did cost, or None.
    """

    def work(part: Floats, paid: Floats) -> Choice:
        y = np.where(np.isnan(part), -np.inf, part)
        top = y == y.max(axis=1, keepdims=True)
        price = np.where(np.isnan(paid), np.inf, paid)
        # Two keys: among the best, the cheapest; an unknown price is still among the best.
        price = np.where(top, np.where(np.isinf(price), 1e300, price), np.inf)
        return np.asarray(np.argmin(price, axis=1))

    free = np.broadcast_to(0.0, labels.shape)
    return np.asarray(by_rows(work, labels, free if cost is None else cost))


def task_oracle(
    labels: Floats,
    tasks: NDArray[np.str_],
    cost: Floats | None = None,
    order: NDArray[np.int64] | None = None,
) -> Choice:
    """(n,) the best single model of each query's task, among those with a label there.

    Where the task's best model has no label on a query, the next in `order`
    answers, by default the models as `ranked`. The best of a task is the one that
    is right most often so; no single model, measured the same way, is above this.

    Args:
        cost: (m,) of each model, for ties.
    """
    out = np.zeros(len(labels), dtype=np.int64)
    order = ranked(labels, cost) if order is None else order
    who = alone(known(labels), order)
    got = np.asarray(by_rows(np.nan_to_num, at_choice(labels, who)))
    for task in distinct(tasks):
        at = np.flatnonzero(tasks == task)
        out[at] = who[at, best_single(take_rows(got, at), cost)]
    return out


def random_mean(labels: Floats) -> Floats:
    """(n,) expected score of a model drawn uniformly among those with a label."""
    return np.asarray(by_rows(lambda part: mean_costs(part.T), labels))


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
