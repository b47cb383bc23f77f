"""Arena score: accuracy and log cost in one number."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.metrics.selection import at_choice
from routeyard.pipelines.metrics.spec import MetricValue, Routed, metric

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
    columns = np.stack(
        [at_choice(test.labels, routed.choice), at_choice(test.costs["usd"], routed.choice)], axis=1
    )
    if np.isnan(columns[:, 1]).any():
        return MetricValue(float("nan"), None, "the cost of a chosen answer is unknown")
    value, drawn = columns.mean(axis=0), routed.data.draws.means(columns)
    return MetricValue(
        float(arena_score(value[0], 1000 * value[1])), arena_score(drawn[:, 0], 1000 * drawn[:, 1])
    )
