"""Bounds on a router's accuracy where the labels of models it would choose are undecided."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.metrics.selection import at_choice, best
from routeyard.pipelines.metrics.spec import MetricValue, Routed, metric


@metric
def accuracy_floor_metric(routed: Routed) -> MetricValue | None:
    """Accuracy of the models it would choose if none were left out, missing labels as wrong."""
    return _with_missing_as(routed, 0.0)


@metric
def accuracy_ceiling_metric(routed: Routed) -> MetricValue | None:
    """Accuracy of the models it would choose if none were left out, missing labels as right."""
    return _with_missing_as(routed, 1.0)


def _with_missing_as(routed: Routed, score: float) -> MetricValue | None:
    """Manski's (1989) worst-case bound; None where the chosen models have all labels."""
    data = routed.data
    choice = best(routed.scores, np.ones(routed.scores.shape, dtype=bool), data.order)
    hit = at_choice(data.test.labels, choice)
    if not np.isnan(hit).any():
        return None
    return routed.mean(np.where(np.isnan(hit), score, hit))
