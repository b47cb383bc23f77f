"""Whether a policy keeps a promise of latency, and what its answers then are worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.latency.percentiles import RESAMPLES, Percentile, percentiles
from routeyard.pipelines.metrics.bootstrap import Draws, interval


@dataclass(frozen=True, slots=True)
class PromiseReport:
    """A promise such as "p95 ≤ 2 s", and what a policy does under it.

    Attributes:
        kept: `no` and `yes` where the interval of the percentile is on one side of the limit.
        excess_s: Seconds by which the percentile is above the limit; negative below.
        violations: Share of calls above the limit, with its interval.
        accuracy: Mean score of the calls with one, late answers counted as they are.
        accuracy_in_time: The same where a late answer counts as wrong.
        cost_usd: Mean cost of the calls whose cost is known; NaN without any.
        unknown: Calls without latency, left out throughout.
    """

    limit_s: float
    percentile: Percentile
    kept: Literal["yes", "no", "cannot be told"]
    excess_s: float
    violations: tuple[float, float, float]
    accuracy: tuple[float, float, float]
    accuracy_in_time: tuple[float, float, float]
    cost_usd: tuple[float, float, float]
    calls: int
    unknown: int

    def lines(self) -> list[str]:
        """The report in words."""
        if not self.calls:
            return [
                f"promise p{100 * self.percentile.share:g} ≤ {self.limit_s:g} s: cannot be told: "
                "no call with a latency is among those measured"
            ]
        says = {
            "yes": "kept",
            "no": f"broken by {self.excess_s:.3g} s",
            "cannot be told": "cannot be told: too few calls bound the percentile from above"
            if self.percentile.capped and self.percentile.high <= self.limit_s
            else "cannot be told: the interval holds the limit",
        }[self.kept]
        found = [
            f"promise p{100 * self.percentile.share:g} ≤ {self.limit_s:g} s: {says}; "
            f"{self.percentile} over {self.calls:,} calls",
            f"  violations: {_percent(self.violations)} (promised "
            f"{100 * (1 - self.percentile.share):g} %)",
        ]
        if not np.isnan(self.accuracy[0]):
            found.append(
                f"  accuracy {_percent(self.accuracy)}; late answers as wrong "
                f"{_percent(self.accuracy_in_time)}"
            )
        if not np.isnan(self.cost_usd[0]):
            found.append("  cost {:.3g} USD a call ({:.3g} to {:.3g})".format(*self.cost_usd))
        if self.unknown:
            found.append(f"  {self.unknown:,} calls without latency are left out")
        return found


def under_promise(
    seconds: Floats,
    score: Floats,
    cost: Floats,
    limit_s: float,
    share: float = 0.95,
    *,
    decision_s: Floats | float = 0.0,
    groups: Ints | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PromiseReport:
    """Percentile, violations, accuracy and cost of a policy's calls under a limit of latency.

    Args:
        seconds: (n,) latency of the call that the policy chose.
        score: (n,) score in [0, 1]; NaN unknown.
        cost: (n,) USD; NaN unknown.
        decision_s: Seconds the router took to decide, added to each call.
        groups: (n,) number of the task of each call: whole tasks are resampled.
    """
    known = ~np.isnan(seconds)
    whole = (seconds + decision_s)[known]
    tasks = None if groups is None else groups[known]
    found = percentiles(whole, (share,), groups=tasks, resamples=resamples, seed=seed)[0]
    late = whole > limit_s
    score, cost = score[known], cost[known]
    in_time = np.where(np.isnan(score), np.nan, np.where(late, 0.0, score))
    values = np.stack([late.astype(np.float64), score, in_time, cost], axis=1)
    low = high = np.full(4, np.nan)
    means = np.full(4, np.nan)
    if len(whole):
        replicates = Draws(len(whole), resamples, seed, groups=tasks).means(values)
        units = len(whole) if tasks is None else len(np.unique(tasks))
        ends = [_ends(values[:, k], replicates[:, k], units, share=k < 3) for k in range(4)]
        low, high = np.array(ends).T
        means = np.array([_mean(values[:, k]) for k in range(4)])
    kept: Literal["yes", "no", "cannot be told"] = "cannot be told"
    if found.low > limit_s:
        kept = "no"
    elif found.high <= limit_s and not found.capped:
        kept = "yes"
    late_share, accuracy, accurate_in_time, cost_usd = (
        (float(m), float(a), float(b)) for m, a, b in zip(means, low, high, strict=True)
    )
    return PromiseReport(
        limit_s, found, kept, found.value - limit_s, late_share, accuracy, accurate_in_time,
        cost_usd, len(whole), int((~known).sum()),
    )  # fmt: skip


def _ends(values: Floats, replicates: Floats, units: int, *, share: bool) -> tuple[float, float]:
    """95 % interval; a share of none or all of n tasks is not certain (Clopper, Pearson 1934)."""
    low, high = interval(replicates)
    known = values[~np.isnan(values)]
    if share and len(known) and known.min() == known.max() and known[0] in (0.0, 1.0):
        end = 0.025 ** (1 / units)
        return (0.0, 1 - end) if known[0] == 0 else (end, 1.0)
    return low, high


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _percent(estimate: tuple[float, float, float]) -> str:
    return "{:.1f} % ({:.1f} to {:.1f})".format(*(100 * one for one in estimate))
