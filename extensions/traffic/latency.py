"""`routeyard latency`: percentiles, promises, and a rule that keeps a deadline on later hours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.extensions.traffic.reading import read_steps
from routeyard.pipelines.common.arrays import Array, Bools, Floats, Ints
from routeyard.pipelines.common.trajectories import seconds
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval
from routeyard.schemas.errors import BadInput
from routeyard.schemas.statuses import ANSWERLESS

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
    results = [
        Percentile(q, float(value), *interval(drawn[:, k]), len(ordered), _capped(q, len(ordered)))
        for k, (q, value) in enumerate(zip(shares, values, strict=True))
    ]
    return results, drawn


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
    item, other = (task[~np.isnan(times)] for times, task in (first, second))
    shared = np.intersect1d(item, other)
    estimates = []
    for times, task in (first, second):
        rows = ~np.isnan(times) & np.isin(task, shared)
        estimates.append(
            percentiles_of(times[rows], shares, groups=task[rows], resamples=resamples, seed=seed)
        )
    (ones, drawn), (others, drawn_others) = estimates
    results = []
    for k, (share, mine, theirs) in enumerate(zip(shares, ones, others, strict=True)):
        mask = len(shared) >= tasks_needed(share)
        low, high = interval(drawn[:, k] - drawn_others[:, k]) if mask else (math.nan, math.nan)
        difference = mine.value - theirs.value if mask else math.nan
        results.append(PairedPercentile(mine, theirs, difference, low, high, tasks_needed(share)))
    return results


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
        """Lines of the report for people."""
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
        results = [
            f"promise p{100 * self.percentile.share:g} ≤ {self.limit_s:g} s: {says}; "
            f"{self.percentile} over {self.calls:,} calls",
            f"  violations: {_percent(self.violations)} (promised "
            f"{100 * (1 - self.percentile.share):g} %)",
        ]
        if not np.isnan(self.accuracy[0]):
            results.append(
                f"  accuracy {_percent(self.accuracy)}; late answers as wrong "
                f"{_percent(self.accuracy_in_time)}"
            )
        if not np.isnan(self.cost_usd[0]):
            results.append("  cost {:.3g} USD a call ({:.3g} to {:.3g})".format(*self.cost_usd))
        if self.unknown:
            results.append(f"  {self.unknown:,} calls without latency are left out")
        return results


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
    result = percentiles(whole, (share,), groups=tasks, resamples=resamples)[0]
    late = whole > limit_s
    score, cost = score[known], cost[known]
    in_time = np.where(np.isnan(score), np.nan, np.where(late, 0.0, score))
    values = np.stack([late.astype(np.float64), score, in_time, cost], axis=1)
    low = high = np.full(4, np.nan)
    means = np.full(4, np.nan)
    if len(whole):
        replicates = Draws(len(whole), resamples, 0, groups=tasks).means(values)
        units = len(whole) if tasks is None else len(np.unique(tasks))
        ends = [_ends(values[:, k], replicates[:, k], units, share=k < 3) for k in range(4)]
        low, high = np.array(ends).T
        means = np.array([_mean(values[:, k]) for k in range(4)])
    verdict: Literal["yes", "no", "cannot be told"] = "cannot be told"
    if result.low > limit_s:
        verdict = "no"
    elif result.high <= limit_s and not result.capped:
        verdict = "yes"
    late_share, accuracy, accurate_in_time, cost_usd = (
        (float(m), float(a), float(b)) for m, a, b in zip(means, low, high, strict=True)
    )
    return PromiseReport(
        limit_s, result, verdict, result.value - limit_s, late_share, accuracy, accurate_in_time,
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
    return "{:.1f} % ({:.1f} to {:.1f})".format(*(100 * item for item in estimate))


#: Calls of a release with what they were worth; one row for each question, model and sample.
_SQL = """
SELECT r.query_id, r.model_id AS arm, q.task, r.latency_s, r.requested_at, l.score, r.cost_usd
FROM responses r JOIN queries q USING (query_id)
LEFT JOIN labels l ON l.query_id = r.query_id AND l.model_id = r.model_id
WHERE r.status NOT IN ('error', 'timeout', 'unanswered') ORDER BY ALL
"""
BY = ("arm", "task", "hour")
#: Share of all calls below which the earlier or the later hours tell too little.
_LEAST_SIDE = 0.1


@dataclass(frozen=True)
class LatencyReport:
    """Latency of recorded calls.

    Attributes:
        groups: Arm, task or hour → percentiles.
        promises: Arm (of every call) or the deadline's rule → what it does on the held-out hours.
        rule: How the rule with a deadline was made; None where it cannot be.
        notes: What is unknown, one sentence each.
    """

    by: str
    groups: Mapping[str, list[Percentile]]
    promises: Mapping[str, PromiseReport]
    rule: str | None
    notes: list[str]

    def lines(self) -> Iterator[str]:
        """The report for people."""
        for name, rows in self.groups.items():
            calls = rows[0].calls
            yield f"{self.by} {name}: {'; '.join(map(str, rows))}; {calls:,} calls"
        if self.rule is not None:
            yield self.rule
        for name, report in self.promises.items():
            first, *more = report.lines()
            yield f"{name}: {first}"
            yield from more
        yield from (f"note: {note}" for note in self.notes)


@dataclass(frozen=True)
class _Calls:
    task: Array
    arm: Array
    group: Ints
    latency: Floats
    time: Floats
    score: Floats
    cost: Floats


def latency_report(
    path: Path,
    *,
    by: str = "arm",
    limit_s: float | None = None,
    share: float = 0.95,
    decision_s: float = 0.0,
    named: str | None = None,
    resamples: int = 2_000,
) -> LatencyReport:
    """Percentiles of recorded calls and, with a limit, who keeps it on later hours.

    Args:
        path: A release, or steps and logs as `read_steps` takes them.
        by: What the percentiles are grouped by: `arm`, `task` or `hour` (UTC).
        limit_s: Seconds that `share` of the calls are promised not to exceed.
        decision_s: Seconds that a router takes to decide, added to each of its calls.

    Raises:
        BadInput: no call has a latency.
    """
    if by not in BY or not 0 < share < 1:
        raise BadInput(f"expected one of {', '.join(BY)} and a share between 0 and 1")
    calls, full, notes = _calls(path, named)
    if np.isnan(calls.latency).all():
        raise BadInput(
            "no call has a latency",
            where=str(path),
            next_step="name a release or a log that states seconds (`latency_s`) of each call",
        )
    keys = {"arm": calls.arm, "task": calls.task, "hour": _hours(calls.time)}[by]
    groups = by_group(calls.latency, keys, resamples=resamples)
    if unknown := int(np.isnan(calls.latency).sum()):
        notes.append(f"{unknown:,} calls have no latency and are left out")
    if limit_s is None:
        return LatencyReport(by, groups, {}, None, notes)
    train, test, how = _halves(calls, notes)
    promises = {
        str(arm): _promise(calls, test & (calls.arm == arm), limit_s, share, 0.0, resamples)
        for arm in np.unique(calls.arm)
    }
    rule = None
    if full:
        rule, chosen = _by_rule(calls, train, test, limit_s, share, decision_s)
        promises["rule"] = _promise(calls, chosen, limit_s, share, decision_s, resamples)
        rule += f"; {how}"
    else:
        notes.append(
            "a rule that chooses among arms cannot be tested: only the arm that was chosen has a "
            "latency in each call"
        )
    return LatencyReport(by, groups, promises, rule, notes)


def _calls(path: Path, named: str | None) -> tuple[_Calls, bool, list[str]]:
    """(calls, whether several arms answered the same question, what a reader must know)."""
    notes: list[str] = []
    if (path / "manifest.json").is_file():
        from routeyard.pipelines.release.reader import open_release

        with open_release(path) as release:
            table = release.sql(_SQL)
        full = True
    else:
        recorded = read_steps(path, named=named)
        steps, notes = recorded.steps, list(recorded.doubts)
        if failed := int(
            pc.sum(pc.is_in(steps["status"], pa.array(sorted(ANSWERLESS)))).as_py() or 0
        ):
            notes.append(f"{failed:,} of the calls failed: their latency counts like any other")
        arms = [a or b for a, b in zip(*(steps.column(n).to_pylist() for n in ("arm", "acted_by")),
                                       strict=True)]  # fmt: skip
        table = pa.table(
            {"query_id": steps.column("query_id"), "arm": arms, "task": steps.column("query_id"),
             "latency_s": steps.column("latency_s"), "requested_at": steps.column("requested_at"),
             "score": steps.column("outcome"), "cost_usd": steps.column("cost_usd")}
        )  # fmt: skip
        full = False

    def column(name: str) -> Floats:
        return np.asarray(table.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)

    names = [np.array(table.column(n).to_pylist(), dtype=str) for n in ("query_id", "arm", "task")]
    codes = np.unique(names[0], return_inverse=True)[1]
    return _Calls(
        names[2], names[1], codes, column("latency_s"), seconds(table, "requested_at"),
        column("score"), column("cost_usd"),
    ), full, notes  # fmt: skip


def _hours(time: Floats) -> Array:
    known = ~np.isnan(time)
    hours = np.full(len(time), "unknown", dtype="<U16")
    hours[known] = time[known].astype("datetime64[s]").astype("datetime64[h]").astype(str)
    return hours


def _halves(calls: _Calls, notes: list[str]) -> tuple[Bools, Bools, str]:
    """(train, test, how): earlier and later hours, else halves of the questions."""
    train, test = split_by_time(calls.time)
    if min(train.sum(), test.sum()) >= _LEAST_SIDE * len(train):
        return train, test, "learned on the earlier hours, measured on the later ones"
    notes.append(
        "nearly all calls are of one hour or have no time: halves of the questions are used in "
        "place of hours, and what changes with time is unknown"
    )
    half = np.random.default_rng(0).permutation(int(calls.group.max()) + 1) % 2 == 0
    return half[calls.group], ~half[calls.group], "learned on one half of the questions"


def _promise(
    calls: _Calls, rows: Bools, limit_s: float, share: float, decision_s: float, resamples: int
) -> PromiseReport:
    return under_promise(
        calls.latency[rows], calls.score[rows], calls.cost[rows], limit_s, share,
        decision_s=decision_s, groups=calls.group[rows], resamples=resamples,
    )  # fmt: skip


def _by_rule(
    calls: _Calls, train: Bools, test: Bools, limit_s: float, share: float, decision_s: float
) -> tuple[str, Bools]:
    """(text of the rule, test calls it selects); scores are means by task of the train part."""
    arms, arm = np.unique(calls.arm, return_inverse=True)
    tasks, task = np.unique(calls.task, return_inverse=True)
    known = train & ~np.isnan(calls.score)
    overall = _cell_means(np.zeros(len(arm), np.int64), arm, calls.score, known, 1, len(arms))
    means = _cell_means(task, arm, calls.score, known, len(tasks), len(arms))
    means = np.where(np.isnan(means), np.nan_to_num(overall), means)
    latency = np.full((int(train.sum()), len(arms)), np.nan)
    latency[np.arange(len(latency)), arm[train]] = calls.latency[train] + decision_s
    rule = fit_deadline(means[task[train]], latency, limit_s, share)
    choice = rule.choose(means)[task]
    said = f"rule: best mean score by task − {rule.weight:.3g} × share of late calls of the arm" + (
        "" if rule.attainable else " (even the fastest arm breaks the promise)"
    )
    return said, test & (choice == arm)


def _cell_means(
    row: Ints, column: Ints, values: Floats, where: Bools, rows: int, columns: int
) -> Floats:
    place = row[where] * columns + column[where]
    sums = np.bincount(place, values[where], rows * columns)
    counts = np.bincount(place, minlength=rows * columns)
    result = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return np.asarray(result.reshape(rows, columns))
