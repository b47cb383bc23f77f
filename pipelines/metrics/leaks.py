"""Accuracy where a published split has the same questions on both sides."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.metrics.selection import at_choice
from routeyard.pipelines.metrics.spec import MetricValue, Routed, metric


@metric
def accuracy_without_leaks_metric(routed: Routed) -> MetricValue | None:
    """Mean score of the chosen answers over the test questions that do not also stand in train,
    with the same words or as near-duplicates; absent where none does.
    """
    leaked = routed.data.leaked
    if leaked is None or not leaked.any():
        return None
    hit = at_choice(routed.data.test.labels, routed.choice)
    return routed.mean(np.where(leaked, np.nan, hit), "every test question stands in train")
