"""nAUC: area under a router's Pareto envelope over the costs that any policy could have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.ground import Ground
from pipelines.evaluate.metrics.spec import Found, MetricSpec, Swept
from pipelines.large.rows import by_rows

Floats = NDArray[np.float64]


def anchors(ground: Ground, measure: str) -> tuple[Floats, Floats, Floats]:
    """(n,) least and greatest cost of each query, and the score of its cheapest answer."""

    def work(labels: Floats, costs: Floats) -> Floats:
        cost = np.where(np.isnan(labels), np.nan, costs)
        cheap = np.nanargmin(cost, axis=1)
        rows = np.arange(len(cost))
        return np.stack([cost[rows, cheap], np.nanmax(cost, axis=1), labels[rows, cheap]], axis=1)

    found = by_rows(work, ground.test.labels, ground.test.costs[measure])
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


def _compute(shown: Swept) -> Found:
    least, most, score = anchors(shown.routed.ground, shown.measure)
    low, high = float(least.mean()), float(most.mean())
    firsts = shown.routed.ground.draws.means(score[:, None])[: len(shown.costs), 0]
    drawn = [
        nauc(c, a, low, high, float(first))
        for c, a, first in zip(shown.costs, shown.accuracies, firsts, strict=True)
    ]
    return Found(
        nauc(shown.cost, shown.accuracy, low, high, float(score.mean())),
        np.array(drawn),
        "every model costs the same on every question",
    )


NAUC = MetricSpec(
    name="nauc",
    direction="higher",
    unit="accuracy",
    source="ORBIT, normalised AUC as its README defines it (its code at d33cb0b differs)",
    says="mean height of the Pareto envelope between the mean of each query's least and of its "
    "greatest cost, anchored left at the per-query cheapest policy",
    needs=("costs",),
    per="measure",
    compute=_compute,
)
