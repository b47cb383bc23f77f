"""AIQ (average improvement in quality) and nAUC: areas under a router's accuracy over cost."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.memmap import by_rows
from routeyard.pipelines.evaluate.metrics.evaluation_data import EvaluationData
from routeyard.pipelines.evaluate.metrics.selection import mix_frontier
from routeyard.pipelines.evaluate.metrics.spec import MetricValue, Swept, metric


def area(xs: Floats, ys: Floats, high: float) -> float:
    """Trapezoids under a polyline, carried flat from its last point to `high`."""
    inner = float(np.sum(np.diff(xs) * (ys[1:] + ys[:-1]) / 2))
    return inner + (high - float(xs[-1])) * float(ys[-1])


def aiq(cost: Floats, accuracy: Floats, largest: float) -> float:
    """AIQ as RouterBench's code has it: area from the own cheapest point, over the largest cost.

    Args:
        cost, accuracy: (k,) points of one router's sweep.
        largest: largest mean cost of any router compared. NaN if it is not above 0.

    >>> aiq(np.array([1.0, 3.0]), np.array([0.4, 0.8]), 4.0)
    0.5
    """
    if not largest > 0:
        return float("nan")
    xs, ys = mix_frontier(cost, accuracy)
    return area(xs, ys, max(largest, float(xs[-1]))) / largest


def aiq_as_written(
    cost: Floats, accuracy: Floats, low: float, high: float, cheapest: float
) -> float:
    """AIQ as the paper writes it: mean of the hull over the common interval [low, high].

    Below a router's cheapest point it has the accuracy of the cheapest single
    model, as in `deferral.audc`: the text does not say, and nothing else can be
    had for that money. Parts of the hull outside the interval do not count.

    >>> round(aiq_as_written(np.array([2.0, 3.0]), np.array([0.4, 0.8]), 1.0, 5.0, 0.2), 6)
    0.6
    """
    if not high > low:
        return float("nan")
    xs, ys = mix_frontier(cost, accuracy)
    inside = (xs > low) & (xs < high)
    at = np.concatenate([[low], xs[inside], [high]])
    values = np.interp(at, xs, ys)
    total = area(at, values, high)
    if xs[0] > low:
        # Up to its first point the curve is the cheapest model's, not the hull's.
        first = min(float(xs[0]), high)
        values = np.interp(at[at >= first], xs, ys)
        total = (first - low) * cheapest + area(at[at >= first], values, high)
    return total / (high - low)


@metric
def aiq_metric(swept: Swept) -> MetricValue:
    """Area under the non-decreasing convex hull, from the router's cheapest point to the largest
    cost of any router, over that cost.
    """
    largest = swept.routed.shared.largest.get(swept.measure, float(swept.cost.max()))
    drawn = [aiq(c, a, largest) for c, a in zip(swept.costs, swept.accuracies, strict=True)]
    return MetricValue(
        aiq(swept.cost, swept.accuracy, largest), np.array(drawn), "nothing costs anything"
    )


@metric
def aiq_as_written_metric(swept: Swept) -> MetricValue:
    """Mean of the non-decreasing convex hull over the interval from the cheapest to the dearest
    single model.
    """
    drawn = [
        aiq_as_written(c, a, swept.low, swept.high, float(first))
        for c, a, first in zip(swept.costs, swept.accuracies, swept.cheapests, strict=True)
    ]
    value = aiq_as_written(swept.cost, swept.accuracy, swept.low, swept.high, swept.cheapest)
    why = (
        "all single models cost the same"
        if not swept.high > swept.low
        else "the cheapest single model has no label in the split"
    )
    return MetricValue(value, np.array(drawn), why)


def anchors(data: EvaluationData, measure: str) -> tuple[Floats, Floats, Floats]:
    """(n,) least and greatest cost of each query, and the score of its cheapest answer."""

    order = data.order

    def work(labels: Floats, costs: Floats) -> Floats:
        labels = labels[:, order]
        cost = np.where(np.isnan(labels), np.nan, costs[:, order])
        cheap = np.nanargmin(cost, axis=1)
        rows = np.arange(len(cost))
        return np.stack([cost[rows, cheap], np.nanmax(cost, axis=1), labels[rows, cheap]], axis=1)

    found = by_rows(work, data.test.labels, data.test.costs[measure])
    least, most, score = (np.ascontiguousarray(column) for column in found.T)
    return least, most, score


def nauc(cost: Floats, accuracy: Floats, low: float, high: float, first: float) -> float:
    """Mean height of the Pareto envelope over [low, high].

    The envelope starts at the per-query cheapest policy (low, first), the same
    for every router, joins the points nothing cheaper equals by straight lines
    and is carried flat from the last.

    Args:
        low, high: mean over queries of the least and of the greatest cost.
        first: accuracy of always asking each query's cheapest model.

    >>> round(nauc(np.array([3.0, 2.0]), np.array([0.8, 0.3]), 1.0, 5.0, 0.4), 6)
    0.7
    """
    if not high > low:
        return float("nan")
    order = np.lexsort((-accuracy, cost))
    x, y = [low], [first]
    for c, a in zip(cost[order].tolist(), accuracy[order].tolist(), strict=True):
        if a > y[-1]:
            # A setting can undercut the anchor only by rounding.
            c = min(max(c, x[-1]), high)
            if c == x[-1]:
                y[-1] = a if c > low else max(y[-1], a)
            else:
                x.append(c)
                y.append(a)
    x.append(high)
    y.append(y[-1])
    return float(np.trapezoid(y, x)) / (high - low)


@metric
def nauc_metric(swept: Swept) -> MetricValue:
    """Mean height of the Pareto envelope between the mean of each query's least and of its greatest
    cost, anchored left at the per-query cheapest policy.
    """
    least, most, score = anchors(swept.routed.data, swept.measure)
    low, high = float(least.mean()), float(most.mean())
    firsts = swept.routed.data.draws.means(score[:, None])[: len(swept.costs), 0]
    drawn = [
        nauc(c, a, low, high, float(first))
        for c, a, first in zip(swept.costs, swept.accuracies, firsts, strict=True)
    ]
    return MetricValue(
        nauc(swept.cost, swept.accuracy, low, high, float(score.mean())),
        np.array(drawn),
        "every model costs the same on every question",
    )
