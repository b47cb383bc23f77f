"""RouterArena's optimality: how near a router comes to the cheapest model that is right."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats
from routeyard.pipelines.metrics.baselines import query_oracle
from routeyard.pipelines.metrics.selection import at_choice
from routeyard.pipelines.metrics.spec import MetricValue, Routed, metric

_UNSOLVED = "no model is right on any test question"
_UNKNOWN = "a cost of a right answer is unknown on every question"


def cheapest_right(decided: Floats, cost: Floats) -> Floats:
    """(n,) least known cost of a right answer; NaN where no right answer has a known cost.

    >>> right, cost = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[3.0, 2.0], [1.0, 1.0]])
    >>> cheapest_right(right, cost).tolist()
    [2.0, nan]
    """
    paid = np.where((decided == 1) & ~np.isnan(cost), cost, np.inf).min(axis=1)
    return np.where(np.isinf(paid), np.nan, paid)


def _right(routed: Routed) -> Bools:
    return np.asarray(at_choice(routed.data.test.decided, routed.choice) == 1)


@metric
def opt_selection_metric(routed: Routed) -> MetricValue | None:
    """Share of the questions that some model gets right on which the chosen model is right and
    no model that is right costs less.
    """
    if routed.data.measure is None:
        return None
    test = routed.data.test
    cost = test.costs[routed.data.measure]
    least = cheapest_right(test.decided, cost)
    hit = _right(routed) & (at_choice(cost, routed.choice) <= least)
    return routed.mean(np.where(np.isnan(least), np.nan, hit.astype(np.float64)), _UNSOLVED)


@metric
def opt_cost_metric(routed: Routed) -> MetricValue | None:
    """Cost of the cheapest right answer over what was paid, mean over the questions that the
    router gets right.
    """
    if routed.data.measure is None:
        return None
    test = routed.data.test
    cost = test.costs[routed.data.measure]
    paid, least = at_choice(cost, routed.choice), cheapest_right(test.decided, cost)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(paid > 0, least / paid, 1.0)  # what is free costs no more than it must
    return routed.mean(np.where(_right(routed) & ~np.isnan(paid), share, np.nan), _UNKNOWN)


@metric
def opt_accuracy_metric(routed: Routed) -> MetricValue:
    """Accuracy over that of the per-question oracle."""
    labels = routed.data.test.labels
    columns = np.stack(
        [at_choice(labels, routed.choice), at_choice(labels, query_oracle(labels))], axis=1
    )
    value, drawn = columns.mean(axis=0), routed.data.draws.means(columns)
    if not value[1] > 0:
        return MetricValue(float("nan"), None, _UNSOLVED)
    with np.errstate(invalid="ignore", divide="ignore"):
        return MetricValue(float(value[0] / value[1]), drawn[:, 0] / drawn[:, 1])


def robustness(choice: Mapping[str, str], reworded: Mapping[str, str]) -> float | None:
    """Share of reworded questions that go to the model that the original goes to; None where
    no question is in both (RouterArena: 420 paraphrased and perturbed questions).

    >>> robustness({"a": "x", "b": "y"}, {"a": "x", "b": "x", "c": "x"})
    0.5
    """
    both = [query for query in reworded if query in choice]
    if not both:
        return None
    return sum(choice[query] == reworded[query] for query in both) / len(both)
