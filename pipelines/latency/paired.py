"""Percentiles of two policies' latency on the same tasks, and their paired difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.latency.percentiles import RESAMPLES, SHARES, Percentile, percentiles_of
from routeyard.pipelines.metrics.bootstrap import interval

#: Seconds of calls, and the number of the task of each.
Calls = tuple[Floats, Ints]


@dataclass(frozen=True, slots=True)
class PairedPercentile:
    """One percentile of two policies, and first less second with its 95 % interval.

    Attributes:
        needed: Tasks below which nothing bounds the percentile from above: with fewer, the
            difference and its interval are NaN.
    """

    first: Percentile
    second: Percentile
    difference: float
    low: float
    high: float
    needed: int


def tasks_needed(share: float) -> int:
    """Tasks of which the slowest is above the percentile in 97.5 % of samples.

    >>> tasks_needed(0.99), tasks_needed(0.95)
    (368, 72)
    """
    return math.ceil(math.log(0.025) / math.log(share))


def paired_percentiles(
    first: Calls, second: Calls, shares: Sequence[float] = SHARES, *,
    resamples: int = RESAMPLES, seed: int = 0,
) -> list[PairedPercentile]:  # fmt: skip
    """Percentiles of both on the tasks that both have a latency of, resampled together.

    A resample draws whole tasks, the same for both policies.
    """
    one, other = (task[~np.isnan(seconds)] for seconds, task in (first, second))
    shared = np.intersect1d(one, other)
    kept = []
    for seconds, task in (first, second):
        rows = ~np.isnan(seconds) & np.isin(task, shared)
        kept.append(
            percentiles_of(seconds[rows], shares, groups=task[rows], resamples=resamples, seed=seed)
        )
    (ones, drawn), (others, drawn_others) = kept
    found = []
    for k, (share, mine, theirs) in enumerate(zip(shares, ones, others, strict=True)):
        told = len(shared) >= tasks_needed(share)
        low, high = interval(drawn[:, k] - drawn_others[:, k]) if told else (math.nan, math.nan)
        difference = mine.value - theirs.value if told else math.nan
        found.append(PairedPercentile(mine, theirs, difference, low, high, tasks_needed(share)))
    return found
