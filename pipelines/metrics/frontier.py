"""PerfGain, CostSave, ParetoDist: a sweep against the best single model and other routers."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats, ratio
from routeyard.pipelines.metrics.spec import MetricValue, Swept, metric

#: Sums of the same labels in another order must not decide a tie.
_TIE = 1e-12


def perf_gain(accuracy: Floats, best: Floats | float) -> Floats:
    """(...,) best over settings (..., k) of A/A_best − 1; NaN where A_best is 0.

    >>> round(float(perf_gain(np.array([0.4, 0.9]), 0.75)), 6)
    0.2
    """
    return ratio(accuracy.max(axis=-1), best) - 1


def cost_save(
    cost: Floats, accuracy: Floats, best: Floats | float, best_cost: Floats | float
) -> Floats:
    """(...,) greatest 1 − c/c_best over settings at least as accurate as the best single model.

    NaN where no setting is; negative where only dearer ones are.

    >>> float(cost_save(np.array([1.0, 2.0, 5.0]), np.array([0.4, 0.8, 0.9]), 0.8, 4.0))
    0.5
    """
    goal = np.asarray(best)[..., None]
    cheapest = np.where(accuracy >= goal - _TIE, cost, np.inf).min(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 1 - cheapest / best_cost
    return np.where(np.isfinite(found), found, np.nan)


def pareto_points(cost: Floats, accuracy: Floats) -> tuple[Floats, Floats]:
    """Points that no other point equals or beats at the same cost or less, cheapest first.

    >>> pareto_points(np.array([2.0, 1.0, 3.0]), np.array([0.5, 0.5, 0.9]))
    (array([1., 3.]), array([0.5, 0.9]))
    """
    order = np.lexsort((-accuracy, cost))
    best = np.maximum.accumulate(accuracy[order])
    keep = np.concatenate([[True], best[1:] > best[:-1]])
    return cost[order][keep], accuracy[order][keep]


def pareto_dist(
    cost: Floats, accuracy: Floats, frontier: tuple[Floats, Floats], low: float, high: float
) -> float:
    """Mean distance of a router's settings to the nearest point of the joint frontier.

    Euclidean in (cost, accuracy), cost scaled so that the cheapest single
    model is at 0 and the dearest at 1.

    >>> f = (np.array([1.0, 5.0]), np.array([0.4, 0.8]))
    >>> round(pareto_dist(np.array([1.0, 5.0]), np.array([0.4, 0.6]), f, 1.0, 5.0), 6)
    0.1
    """
    if not high > low:
        return float("nan")
    dx = (cost[:, None] - frontier[0][None, :]) / (high - low)
    dy = accuracy[:, None] - frontier[1][None, :]
    return float(np.sqrt(dx**2 + dy**2).min(axis=1).mean())


@metric
def perf_gain_metric(swept: Swept) -> MetricValue:
    """Best over the sweep's settings of accuracy over that of the best single model, minus 1."""
    one = swept.against
    return MetricValue(
        float(perf_gain(one.accuracy, one.best)),
        perf_gain(one.accuracies, one.bests),
        "the best single model is never right",
        one.n,
    )


@metric
def cost_save_metric(swept: Swept) -> MetricValue:
    """Greatest saving over settings that are at least as accurate as the best single model."""
    one = swept.against
    return MetricValue(
        float(cost_save(one.cost, one.accuracy, one.best, one.best_cost)),
        cost_save(one.costs, one.accuracies, one.bests, one.best_costs),
        "no setting is as accurate as the best single model",
        one.n,
    )


@metric
def pareto_dist_metric(swept: Swept) -> MetricValue | None:
    """Mean distance of the sweep's settings to the nearest point of the joint frontier."""
    joint = swept.routed.shared.frontier.get(swept.measure)
    if joint is None:
        return None
    value = pareto_dist(swept.cost, swept.accuracy, joint, swept.low, swept.high)
    # The frontier is held as it is: the interval is that of this router's settings.
    drawn = [
        pareto_dist(c, a, joint, swept.low, swept.high)
        for c, a in zip(swept.costs, swept.accuracies, strict=True)
    ]
    return MetricValue(value, np.array(drawn), "all single models cost the same")
