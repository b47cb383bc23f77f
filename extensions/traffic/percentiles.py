"""Latency as it is promised: percentiles with intervals, promises, and choices under a deadline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from routeyard.pipelines.common.arrays import Array, Bools, Floats, Ints
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval

# A selection rule that keeps a deadline: the best score whose late answers stay within a share.


@dataclass(frozen=True, eq=False)
class DeadlineRule:
    """argmax over arms of score − weight · chance to be late.

    Attributes:
        late: (arms,) share of each arm's calls above the limit, of those it was learned from.
        weight: What a chance of 1 to be late costs in score.
        attainable: False where even the arm that is late least often breaks the promise.
    """

    limit_s: float
    share: float
    late: Floats
    weight: float
    attainable: bool

    def choose(self, scores: Floats) -> Ints:
        """(n,) arm for each question of `scores` (n, arms); ties go to the arm that is late less.

        An arm whose latency is unknown is never chosen.
        """
        value = scores - self.weight * np.nan_to_num(self.late, nan=0.0)
        value = np.where(np.isnan(self.late), -np.inf, value)
        order = np.argsort(self.late, kind="stable")
        return np.asarray(order[np.argmax(value[:, order], axis=1)])


def fit_deadline(
    scores: Floats, seconds: Floats, limit_s: float, share: float = 0.95, *, margin: float = 1.645
) -> DeadlineRule:
    """The rule with the smallest weight that keeps the promise on the calls it learns from.

    The expected share of late calls, and `margin` standard errors of it on top, stay below
    1 − share. Per arm, the chance to be late is its share of late calls, whatever the question.

    Args:
        scores: (n, arms) what the router expects of each arm.
        seconds: (n, arms) latency of each arm with the router's decision; NaN unknown.
    """
    late = _means(seconds > limit_s, ~np.isnan(seconds))
    spread = np.sqrt(late * (1 - late) / np.maximum((~np.isnan(seconds)).sum(axis=0), 1))
    allowed = 1 - share

    def excess(weight: float) -> float:
        arm = DeadlineRule(limit_s, share, late, weight, True).choose(scores)
        used = np.bincount(arm, minlength=len(late)) / max(len(arm), 1)
        known = np.nan_to_num(late) @ used
        return float(known + margin * np.sqrt(np.square(np.nan_to_num(spread) * used).sum()))

    weights = np.concatenate([[0.0], np.geomspace(1e-3, 1e4, 141)])
    for weight in weights:
        if excess(float(weight)) <= allowed:
            return DeadlineRule(limit_s, share, late, float(weight), True)
    return DeadlineRule(limit_s, share, late, float(weights[-1]), False)


def _means(what: Bools, where: Bools) -> Floats:
    """(arms,) share of true values where they are known; NaN where none is."""
    count = where.sum(axis=0)
    share = (what & where).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, share, np.nan)


def split_by_time(time: Floats, part: float = 0.5) -> tuple[Bools, Bools]:
    """(train, test) masks: the earlier hours with about `part` of the calls, and the later ones.

    An hour is never on both sides, so that one slow hour does not tell of itself. Calls without a
    time are on neither side.
    """
    known = ~np.isnan(time)
    hours = np.floor(time / 3600)
    listed, counts = np.unique(hours[known], return_counts=True)
    upto = np.cumsum(counts)
    cut = listed[np.argmin(np.abs(upto - part * upto[-1]))] if len(listed) else np.nan
    return known & (hours <= cut), known & (hours > cut)


# Percentiles of latency with bootstrap intervals, per arm, task and hour.

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


# Percentiles of two policies' latency on the same tasks, and their paired difference.

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


# Whether a policy keeps a promise of latency, and what its answers then are worth.


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
