"""Answer quality: how often a judge prefers the answer a router's choice gives."""

from __future__ import annotations

from routeyard.pipelines.metrics.spec import MetricValue, Routed, metric


@metric
def answer_quality_metric(routed: Routed) -> MetricValue | None:
    """Score(i) = 100 × questions on which the judge selects router i, over questions judged."""
    column = routed.shared.picks.get(routed.router)
    return None if column is None else routed.mean(100 * column, "no question is judged")
