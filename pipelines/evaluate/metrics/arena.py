"""RouterArena: accuracy and log cost in one number, optimality, robustness."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from routeyard.pipelines.common.arrays import Bools, Floats
from routeyard.pipelines.evaluate.metrics.selection import at_choice, query_oracle
from routeyard.pipelines.evaluate.metrics.spec import MetricValue, Routed, metric

#: USD per 1,000 queries at which the cost part is 1 and 0.
CHEAP, DEAR = 0.0044, 200.0

#: Weight of cost against accuracy.
BETA = 0.1


def arena_score(accuracy: Floats | float, usd_per_1000: Floats | float) -> Floats:
    """S = (1+β)·A·C/(β·A + C), C = (log₂ 200 − log₂ c)/(log₂ 200 − log₂ 0.0044), β = 0.1.

    Args:
        accuracy: A, a share.
        usd_per_1000: c, USD per 1,000 queries, clipped to [0.0044, 200].

    Returns:
        (...,) scores; 0 where A and C are both 0.

    >>> round(float(arena_score(0.7518957671, 8.5434721952)), 10)
    0.6586468316
    """
    c = np.clip(usd_per_1000, CHEAP, DEAR)
    cheap = (np.log2(DEAR) - np.log2(c)) / (np.log2(DEAR) - np.log2(CHEAP))
    below = BETA * np.asarray(accuracy) + cheap
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, (1 + BETA) * accuracy * cheap / below, 0.0)


@metric
def arena_score_metric(routed: Routed) -> MetricValue | None:
    """Harmonic mean of accuracy and of log₂ cost scaled between 0.0044 and 200 USD per 1,000
    queries, β = 0.1.
    """
    test = routed.data.test
    if "usd" not in test.costs:
        return None
    paid = at_choice(test.costs["usd"], routed.choice) + routed.decisions("usd")
    columns = np.stack([at_choice(test.labels, routed.choice), paid], axis=1)
    if np.isnan(columns[:, 1]).any():
        return MetricValue(float("nan"), None, "the cost of a chosen answer is unknown")
    value, drawn = columns.mean(axis=0), routed.data.draws.means(columns)
    return MetricValue(
        float(arena_score(value[0], 1000 * value[1])), arena_score(drawn[:, 0], 1000 * drawn[:, 1])
    )


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
    """Cost of the cheapest right answers over what was paid, both summed over the questions that
    the router gets right.
    """
    if routed.data.measure is None:
        return None
    test = routed.data.test
    cost = test.costs[routed.data.measure]
    paid, least = at_choice(cost, routed.choice), cheapest_right(test.decided, cost)
    paid = paid + routed.decisions(routed.data.measure)
    return _ratio(routed, least, paid, _right(routed) & ~np.isnan(paid), _UNKNOWN)


@metric
def opt_accuracy_metric(routed: Routed) -> MetricValue:
    """Accuracy over the per-question oracle's, on the questions that some model gets right."""
    labels, decided = routed.data.test.labels, routed.data.test.decided
    reached, best = (at_choice(labels, one) for one in (routed.choice, query_oracle(labels)))
    return _ratio(routed, reached, best, (decided == 1).any(axis=1), _UNSOLVED)


def _ratio(routed: Routed, above: Floats, below: Floats, rows: Bools, reason: str) -> MetricValue:
    """Sum of `above` over that of `below` on some rows; 1 where both sums are 0."""
    if not rows.any():
        return MetricValue(float("nan"), None, reason)
    columns = np.where(rows[:, None], np.stack([above, below], axis=1), 0.0)
    value, drawn = columns.mean(axis=0), routed.data.draws.means(columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        found, replicates = (
            np.where(one[..., 1] > 0, one[..., 0] / one[..., 1], 1.0) for one in (value, drawn)
        )
    return MetricValue(float(found), replicates, n=int(rows.sum()))


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
