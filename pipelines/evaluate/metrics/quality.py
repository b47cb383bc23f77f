"""Answer quality by a judge, bounds where labels are undecided, accuracy without leaks."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.evaluate.metrics.selection import Choice, at_choice, best
from routeyard.pipelines.evaluate.metrics.spec import MetricValue, Routed, metric


@metric
def answer_quality_metric(routed: Routed) -> MetricValue | None:
    """Score(i) = 100 × questions on which the judge selects router i, over questions judged."""
    column = routed.shared.picks.get(routed.router)
    return None if column is None else routed.mean(100 * column, "no question is judged")


@metric
def accuracy_floor_metric(routed: Routed) -> MetricValue | None:
    """Accuracy of the models it would choose if none were left out, missing labels as wrong."""
    return _with_missing_as(routed, 0.0)


@metric
def accuracy_ceiling_metric(routed: Routed) -> MetricValue | None:
    """Accuracy of the models it would choose if none were left out, missing labels as right."""
    return _with_missing_as(routed, 1.0)


@metric
def accuracy_without_leaks_metric(routed: Routed) -> MetricValue | None:
    """Mean score of the chosen answers over the test questions that are not also in train,
    with the same words or as near-duplicates; absent where none is.
    """
    leaked = routed.data.leaked
    if leaked is None or not leaked.any():
        return None
    hit = at_choice(routed.data.test.labels, routed.choice)
    return routed.mean(np.where(leaked, np.nan, hit), "every test question is in train")


def wanted(routed: Routed) -> Choice:
    """(n,) the models it would choose if none were left out for want of a label."""
    if not np.isnan(routed.data.test.labels).any():
        return routed.choice
    return best(routed.scores, np.ones(routed.scores.shape, dtype=bool), routed.data.order)


def _with_missing_as(routed: Routed, score: float) -> MetricValue | None:
    """Manski's (1989) worst-case bound; None where the chosen models have all labels."""
    hit = at_choice(routed.data.test.labels, routed.once(wanted))
    if not np.isnan(hit).any():
        return None
    return routed.mean(np.where(np.isnan(hit), score, hit))
