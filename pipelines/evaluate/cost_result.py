"""One router over what answers cost: every metric of a cost measure with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.evaluate.rows import MetricRow, metric
from routeyard.pipelines.evaluate.sweep import at_budget, deferral, utilities
from routeyard.pipelines.metrics import METRICS
from routeyard.pipelines.metrics.evaluation_data import EvaluationData
from routeyard.pipelines.metrics.selection import Choice, at_choice, best
from routeyard.pipelines.metrics.spec import MetricSpec, Routed, SharedFacts, Swept


@dataclass(frozen=True, eq=False)
class CostResult:
    """Rows of one router that need costs, and what comparisons need of them.

    Attributes:
        metrics: rows of each measure.
        budget: rows at the mean cost of the most accurate single model.
        matched: (n,) scores at that cost; without a measure, those at any.
        areas: measure → (value, replicates) of its AUDC.
        grids: the first measure → (k,) mean cost and (n, k) choice at every setting of the sweep.
    """

    router: str
    metrics: list[MetricRow]
    budget: list[MetricRow]
    curves: list[dict[str, Any]]
    matched: Floats
    areas: dict[str, tuple[float, Floats]]
    grids: dict[str, tuple[Floats, NDArray[np.int16]]]


def routed_of(
    data: EvaluationData, router: str, scores: Floats, shared: SharedFacts | None = None
) -> Routed:
    """A router that gives scores (n_test, m), and the model that it asks at any price."""
    choice = best(scores, data.available(), data.order)
    return Routed(data, router, scores, choice, shared or SharedFacts())


def over_costs(routed: Routed, *, points: int = 100, scaling: str = "min-max") -> CostResult:
    """All metrics of a router that need costs.

    Args:
        points: settings of each deferral curve.
        scaling: how utility scales costs, a key of `SCALINGS`.
    """
    data = routed.data
    rows: list[MetricRow] = []
    curves: list[dict[str, Any]] = []
    areas: dict[str, tuple[float, Floats]] = {}
    grids: dict[str, tuple[Floats, NDArray[np.int16]]] = {}
    for name in data.prices:
        found = deferral(routed, name, points)
        rows += found.metrics + registered(routed, "measure", found.swept)
        curves += found.curves
        areas[name] = found.area
        if name == data.measure:
            grids[name] = (found.swept.cost, found.choices)
        rows += utilities(routed, name, scaling)
    budget, within = _at_budget(routed, points)
    matched = at_choice(data.test.labels, within)
    return CostResult(routed.router, rows, budget, curves, matched, areas, grids)


def registered(routed: Routed, per: str, view: Routed | Swept) -> list[MetricRow]:
    """Rows of the registry's metrics that are computed one by one, others' packages included."""
    rows = []
    for name in METRICS.names():
        spec: MetricSpec = METRICS.get(name)
        if spec.per != per or spec.compute is None:
            continue
        found = spec.compute(view)
        if found is not None:
            called = f"{name}[{view.measure}]" if isinstance(view, Swept) else name
            measured = (found.value, found.replicates, found.reason, found.n)
            rows.append(metric(routed.router, called, routed.data.split, *measured))
    return rows


def _at_budget(routed: Routed, points: int) -> tuple[list[MetricRow], Choice]:
    """The row of accuracy at the budget, and the choices there."""
    data, split = routed.data, routed.data.split
    if data.measure is None:
        return [], routed.choice
    name = f"accuracy_at_budget[{data.measure}]"
    within = at_budget(routed, points)
    if within is None:
        why = "the most accurate single model has no answer with a label and a known cost"
        return [metric(routed.router, name, split, None, reason=why)], routed.choice
    matched = at_choice(data.test.labels, within)
    drawn = data.draws.means(matched[:, None])[:, 0]
    return [metric(routed.router, name, split, float(matched.mean()), drawn)], within
