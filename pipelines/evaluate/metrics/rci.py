"""RCI: how often a router calls a model it did not need to call, or misses the best answer."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.memmap import by_rows
from routeyard.pipelines.evaluate.metrics.selection import Choice, at_choice
from routeyard.pipelines.evaluate.metrics.spec import MetricValue, Routed, metric


def rci_column(labels: Floats, mean_cost: Floats, choice: Choice) -> Floats:
    """(n,) 0 where the choice was in order, 1 where it was not.

    In order: the chosen answer is as good as any and its model is not the
    dearest of the pool, or it is as good as any and only dearest models are.

    Args:
        labels: (n, m) scores; NaN is missing and never the best.
        mean_cost: (m,) mean cost of every model; the dearest may be several.

    >>> y = np.array([[1, 1], [0, 1], [1, 0], [0, 0.0]])
    >>> rci_column(y, np.array([1.0, 9.0]), np.array([1, 1, 1, 0])).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    dearest = mean_cost == np.nanmax(mean_cost)

    def work(part: Floats, chosen: Choice) -> Floats:
        y = np.where(np.isnan(part), -np.inf, part)
        top = y == y.max(axis=1, keepdims=True)
        good = at_choice(top.astype(np.float64), chosen) > 0
        only_dearest = ~(top & ~dearest).any(axis=1)
        return np.where(good & (~dearest[chosen] | only_dearest), 0.0, 1.0)

    return np.asarray(by_rows(work, labels, choice))


@metric
def rci_metric(routed: Routed) -> MetricValue | None:
    """1 − share of questions on which the chosen answer is as good as any and, unless only the
    dearest model could give it, not the dearest model's.
    """
    measure = routed.data.measure
    if measure is None:
        return None
    cost = routed.data.single_means(measure)
    return routed.mean(rci_column(routed.data.test.labels, cost, routed.choice))
