"""Percentiles of latency with bootstrap intervals, per arm, task and hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Ints
from routeyard.pipelines.metrics.bootstrap import Draws, interval

#: What services promise.
SHARES = (0.5, 0.95, 0.99)
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile of some calls, in seconds, with its 95 % interval.

    Attributes:
        capped: Too few calls are above it to bound it from above: `high` is the slowest call seen,
            and the true percentile may be larger.
    """

    share: float
    value: float
    low: float
    high: float
    calls: int
    capped: bool

    def __str__(self) -> str:
        end = f"{self.high:.3g} or more" if self.capped else f"{self.high:.3g}"
        return f"p{100 * self.share:g} {self.value:.3g} s ({self.low:.3g} to {end})"


def percentiles(
    seconds: Floats,
    shares: Sequence[float] = SHARES,
    *,
    groups: Ints | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Percentile]:
    """Percentiles as `numpy.quantile` has them, with percentile-bootstrap intervals.

    Without groups, order statistics of a resample are drawn directly: of n calls with replacement,
    the k-th smallest is the call at ⌊n·U⌋, where U is the k-th smallest of n uniform numbers,
    Beta(k, n − k + 1); the next one follows from it. That is the plain bootstrap, at a cost that
    does not grow with n.

    Args:
        seconds: (n,) latencies; NaN, which is unknown, is left out.
        groups: (n,) number of the task of each call: whole tasks are drawn.
    """
    return percentiles_of(seconds, shares, groups=groups, resamples=resamples, seed=seed)[0]


def percentiles_of(
    seconds: Floats, shares: Sequence[float], *, groups: Ints | None, resamples: int, seed: int
) -> tuple[list[Percentile], Floats]:
    """As `percentiles`, with the (resamples, shares) replicates: of one seed and the same groups,
    two samples draw the same groups."""
    known = ~np.isnan(seconds)
    order = np.argsort(seconds[known], kind="stable")
    ordered = seconds[known][order]
    if not len(ordered):
        nan = float("nan")
        none = np.full((resamples, len(shares)), nan)
        return [Percentile(q, nan, nan, nan, 0, True) for q in shares], none
    if groups is None:
        drawn = _drawn(ordered, shares, resamples, seed)
    else:
        drawn = _drawn_by_group(ordered, groups[known][order], shares, resamples, seed)
    values = np.quantile(ordered, shares)
    found = [
        Percentile(q, float(value), *interval(drawn[:, k]), len(ordered), _capped(q, len(ordered)))
        for k, (q, value) in enumerate(zip(shares, values, strict=True))
    ]
    return found, drawn


def by_group(
    seconds: Floats, keys: Array, shares: Sequence[float] = SHARES, *, resamples: int = RESAMPLES
) -> dict[str, list[Percentile]]:
    """Percentiles of the calls of each key, such as an arm, a task or an hour."""
    names, codes = np.unique(keys, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    parts = np.split(seconds[order], np.searchsorted(codes[order], np.arange(1, len(names))))
    return {
        str(name): percentiles(part, shares, resamples=resamples)
        for name, part in zip(names, parts, strict=True)
    }


def _capped(share: float, calls: int) -> bool:
    """Whether the slowest call may be below the percentile, in more than 2.5 % of samples."""
    return bool(share**calls > 0.025)


def _drawn(ordered: Floats, shares: Sequence[float], resamples: int, seed: int) -> Floats:
    """(resamples, shares) percentiles of resamples of calls."""
    n, generator = len(ordered), np.random.default_rng(seed)
    out = np.empty((resamples, len(shares)))
    for k, share in enumerate(shares):
        place = share * (n - 1)
        below = int(place)
        first = generator.beta(below + 1, n - below, resamples)
        low = ordered[np.minimum((n * first).astype(np.int64), n - 1)]
        out[:, k] = low
        if place > below:
            # The next of the n − below − 1 uniform numbers that are left above the first.
            second = first + (1 - first) * generator.beta(1, n - below - 1, resamples)
            high = ordered[np.minimum((n * second).astype(np.int64), n - 1)]
            out[:, k] += (place - below) * (high - low)
    return out


def _drawn_by_group(
    ordered: Floats, groups: Ints, shares: Sequence[float], resamples: int, seed: int
) -> Floats:
    """(resamples, shares) percentiles of resamples of tasks, from counts of the sorted calls."""
    out = np.empty((resamples, len(shares)))
    for first, counts in Draws(len(ordered), resamples, seed, groups=groups).blocks():
        upto = counts.cumsum(axis=1)
        total = upto[:, -1]
        for k, share in enumerate(shares):
            place = share * (total - 1)
            below = np.floor(place)
            # How many sorted calls are used up before the wanted one: its index.
            low = ordered[(upto <= below[:, None]).sum(axis=1)]
            high = ordered[(upto <= np.minimum(below + 1, total - 1)[:, None]).sum(axis=1)]
            out[first : first + len(counts), k] = low + (place - below) * (high - low)
    return out
