"""Cost-aware utility: what a router is worth to someone who weighs accuracy against cost.

CARROT (Somerstep et al., arXiv 2502.03261): the router picks
argmax (1−λ)·p̂ − λ·c̃ and is paid (1−λ)·Y − λ·c̃.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.matrix.ranking import mean_costs
from routeyard.pipelines.matrix.row_blocks import by_rows
from routeyard.pipelines.metrics.selection import Choice, Order, at_choice, best

Floats = NDArray[np.float64]

#: Weights of cost at which utility is reported.
WEIGHTS = (0.0, 0.2, 0.5, 0.7, 0.9)

Scale = Callable[[Floats], Floats]


def min_max(train: Floats) -> Scale:
    """c̃ = (c − min)/(max − min) over the train answers; not clipped on others."""
    low, high = float(np.nanmin(train)), float(np.nanmax(train))
    width = high - low if high > low else 1.0
    return lambda cost: (cost - low) / width


def by_mean(train: Floats) -> Scale:
    """c̃ from 0 at the cheapest to 1 at the dearest model's mean train cost.

    Unlike `min_max` it is not ruled by a single very long answer.
    """
    means = mean_costs(train)
    low, high = float(means.min()), float(means.max())
    width = high - low if high > low else 1.0
    return lambda cost: (cost - low) / width


def unscaled(train: Floats) -> Scale:
    """c̃ = c, in the measure's own unit."""
    return lambda cost: cost


SCALINGS: Mapping[str, Callable[[Floats], Scale]] = {
    "min-max": min_max,
    "mean": by_mean,
    "none": unscaled,
}


def choose(
    scores: Floats, available: NDArray[np.bool_], expected: Floats, weight: float, order: Order
) -> Choice:
    """(n,) argmax of (1−λ)·p̂ − λ·c̃.

    Args:
        scores: (n, m) predicted scores p̂.
        expected: (m,) or (n, m) scaled cost known beforehand.
        weight: λ in [0, 1].
        order: (m,) models; the first of it wins a tie.
    """
    wide = np.broadcast_to(expected, scores.shape)

    def work(score: Floats, can: NDArray[np.bool_], cost: Floats) -> Choice:
        return best((1 - weight) * score - weight * cost, can, order)

    return np.asarray(by_rows(work, scores, available, wide))


def realised(labels: Floats, cost: Floats, choice: Choice, weight: float) -> Floats:
    """(n,) utility (1−λ)·Y − λ·c̃ of each choice, with the scaled cost it did have.

    >>> realised(np.array([[1.0, 0.0]]), np.array([[0.5, 0.0]]), np.array([0]), 0.2)
    array([0.7])
    """
    return (1 - weight) * at_choice(labels, choice) - weight * at_choice(cost, choice)
