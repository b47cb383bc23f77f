"""AIQ: average improvement in quality, the area under a router's hull of quality over cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.baselines import mix_frontier
from pipelines.evaluate.metrics.spec import Found, MetricSpec, Swept

Floats = NDArray[np.float64]


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


def _coded(shown: Swept) -> Found:
    largest = shown.routed.rivals.largest.get(shown.measure, float(shown.cost.max()))
    drawn = [aiq(c, a, largest) for c, a in zip(shown.costs, shown.accuracies, strict=True)]
    return Found(
        aiq(shown.cost, shown.accuracy, largest), np.array(drawn), "nothing costs anything"
    )


def _written(shown: Swept) -> Found:
    drawn = [
        aiq_as_written(c, a, shown.low, shown.high, float(first))
        for c, a, first in zip(shown.costs, shown.accuracies, shown.cheapests, strict=True)
    ]
    value = aiq_as_written(shown.cost, shown.accuracy, shown.low, shown.high, shown.cheapest)
    why = (
        "all single models cost the same"
        if not shown.high > shown.low
        else "the cheapest single model has no label in the split"
    )
    return Found(value, np.array(drawn), why)


AIQ = MetricSpec(
    name="aiq",
    direction="higher",
    unit="accuracy",
    source="RouterBench (arXiv 2403.12031), AIQ, as its code computes it",
    says="area under the non-decreasing convex hull, from the router's cheapest point to the "
    "largest cost of any router, over that cost",
    needs=("costs",),
    per="measure",
    compute=_coded,
)
AIQ_AS_WRITTEN = MetricSpec(
    name="aiq_as_written",
    direction="higher",
    unit="accuracy",
    source="RouterBench (arXiv 2403.12031), AIQ, as its text writes it",
    says="mean of the non-decreasing convex hull over the interval from the cheapest to the "
    "dearest single model",
    needs=("costs",),
    per="measure",
    compute=_written,
)
