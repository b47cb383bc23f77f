"""Cost of whole policies with intervals by task, and what of it is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from routeyard.extensions.traffic.replay import (
    PriceTable,
    StepCosts,
    Trajectories,
    first_reads,
    replay,
)
from routeyard.pipelines.common.arrays import Bools, Floats, Ints, ratio
from routeyard.pipelines.common.trajectories import ArmPrice
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval

#: More tasks than this are put together at random, which leaves the spread of a sum as it is.
MOST_GROUPS = 20_000
#: With fewer tasks nothing is known of how they differ: an interval is unknown.
FEWEST_TASKS = 2
_NO_ENDS = (float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class PolicyCost:
    """What a policy costs over all trajectories, in USD.

    Attributes:
        usd: Sum over all steps; None where it is unknown.
        bounds: The same with as much and as little cache as is possible.
        each: USD per trajectory with its 95 % interval, tasks resampled.
        saved: USD per trajectory below the first policy, paired, with its interval.
        known: USD of the steps that are known, prompts and completions.
        read_tokens, prompt_tokens: Of all steps, as the rules say (most cache).
        lost: USD that switches cost because the new arm had no cache.
        estimated: Steps whose completion is estimated from the arm's own answers elsewhere.
        untold: Reason → steps whose cost is unknown.
    """

    policy: str
    usd: float | None
    bounds: tuple[float, float] | None
    each: tuple[float, float, float] | None
    saved: tuple[float, float, float] | None
    known: float
    steps: int
    switches: int
    lost: float
    read_tokens: float
    prompt_tokens: float
    estimated: int
    untold: Mapping[str, int]

    @property
    def total(self) -> str:
        """`usd` for people: bounds where they are apart."""
        if self.usd is None or self.bounds is None:
            return "unknown"
        low, high = self.bounds
        return f"{self.usd:.4g}" if high - low <= 1e-9 * high else f"{low:.4g}–{high:.4g}"

    @property
    def cached(self) -> float:
        """Share of the prompt tokens that are read from a cache."""
        return self.read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


def policy_costs(
    steps: Trajectories,
    policies: Mapping[str, Ints],
    prices: Mapping[str, ArmPrice],
    names: tuple[str, ...],
    *,
    resamples: int = 1_000,
    seed: int = 0,
) -> list[PolicyCost]:
    """Costs of each policy, the first of which the others are compared with.

    A completion of an arm that did not answer is estimated by the mean of its completions in other
    steps, resampled with the tasks; of an arm that never answered it is unknown.
    """
    group, tasks = _groups(steps, seed), len(steps.tasks)
    output = PriceTable.of(prices, names).output
    own = _completions(steps, names, group)
    columns, whole = [], []
    for name, arm in policies.items():
        costs = replay(steps, arm, prices, names)
        whole.append(_totals(name, steps, costs, own[:, len(names) :].sum(axis=0)))
        columns.append(_columns(costs, group, len(names)))
        del costs
    trials = np.bincount(group[steps.first], minlength=len(own))[:, None]
    stacked = np.concatenate([own, trials, *columns], axis=1)
    drawn = Draws(len(stacked), resamples, seed).sums(stacked)
    everything = np.concatenate([stacked.sum(axis=0)[None], drawn])  # the sample itself first
    split = np.split(everything, np.cumsum([own.shape[1], 1] + [c.shape[1] for c in columns])[:-1],
                     axis=1)  # fmt: skip
    means = ratio(split[0][:, : len(names)], split[0][:, len(names) :]) * output / 1e6
    each = [_each(part, means, split[1][:, 0]) for part in split[2:]]
    return [
        _with_intervals(total, mine, each[0], int(trials.sum()), tasks)
        for total, mine in zip(whole, each, strict=True)
    ]


def stated_cost(
    steps: Trajectories, like: PolicyCost, *, resamples: int = 1_000, seed: int = 0
) -> PolicyCost | None:
    """`recorded` as the log itself states it; None where it states the cost of no call.

    Args:
        like: The recorded arms as modelled, whose counts of steps hold.
    """
    lacking = int(np.isnan(steps.cost).sum())
    if lacking == len(steps):
        return None
    group = _groups(steps, seed)
    columns = [np.bincount(group, item) for item in (steps.cost, steps.is_first)]
    sums = np.stack(columns, axis=1).astype(np.float64)
    usd = each = None
    if not lacking:
        usd = float(steps.cost.sum())
        drawn = Draws(len(sums), resamples, seed).sums(sums)
        ends = interval(drawn[:, 0] / drawn[:, 1])
        each = (usd / sums[:, 1].sum(), *(ends if len(steps.tasks) >= FEWEST_TASKS else _NO_ENDS))
    return replace(
        like, policy="recorded", usd=usd, bounds=None if usd is None else (usd, usd), each=each,
        saved=None, known=float(np.nansum(steps.cost)), lost=0.0,
        read_tokens=float(np.nansum(steps.read)), prompt_tokens=float(np.nansum(steps.prompt)),
        estimated=0, untold={"the log states no cost": lacking} if lacking else {},
    )  # fmt: skip


def _totals(name: str, steps: Trajectories, costs: StepCosts, answers: Floats) -> PolicyCost:
    """What needs no resampling.

    Args:
        answers: (arms,) completions of each arm that are known.
    """
    never = costs.foreign & (answers[costs.arm] == 0)
    no_price = np.isnan(costs.prompt_most) & ~np.isnan(steps.prompt)
    lacking = ~costs.foreign & np.isnan(steps.completion)
    untold = {
        "no prompt tokens are recorded": int(np.isnan(steps.prompt).sum()),
        "a price is not known": int(no_price.sum()),
        "no completion tokens are recorded": int(lacking.sum()),
        "the arm never answered, so its completions are unknown": int(never.sum()),
    }
    return PolicyCost(
        name, None, None, None, None,
        known=float(np.nansum(costs.prompt_least) + np.nansum(costs.output)),
        steps=len(steps), switches=int(costs.switch.sum()), lost=float(np.nansum(costs.lost)),
        read_tokens=float(np.nansum(costs.read_most)),
        prompt_tokens=float(np.nansum(steps.prompt)), estimated=int((costs.foreign & ~never).sum()),
        untold={why: count for why, count in untold.items() if count},
    )  # fmt: skip


def _with_intervals(
    total: PolicyCost, each: Floats, first: Floats, trials: int, tasks: int
) -> PolicyCost:
    """The cost, where it is known, with intervals; `each` and `first` are (1 + resamples, 2): least
    and most USD per trajectory."""
    if total.untold or np.isnan(each[0]).any():
        return total
    if tasks < FEWEST_TASKS:
        each, first = (np.where(np.arange(len(x))[:, None], np.nan, x) for x in (each, first))
    saved = None
    if not np.isnan(first[0]).any():
        low = interval(first[1:, 0] - each[1:, 1])[0]
        high = interval(first[1:, 1] - each[1:, 0])[1]
        saved = (float((first[0] - each[0]).mean()), low, high)
    return replace(
        total, usd=float(each[0].mean() * trials), saved=saved,
        bounds=(float(each[0, 0] * trials), float(each[0, 1] * trials)),
        each=(float(each[0].mean()), interval(each[1:, 0])[0], interval(each[1:, 1])[1]),
    )  # fmt: skip


def _groups(steps: Trajectories, seed: int) -> Ints:
    """(n,) what is resampled: the task, or one of many groups of tasks put together at random."""
    tasks = len(steps.tasks)
    if tasks <= MOST_GROUPS:
        return steps.task
    drawn = np.random.default_rng(seed).permutation(tasks) % MOST_GROUPS
    return np.asarray(drawn[steps.task])


def _completions(steps: Trajectories, names: Sequence[str], group: Ints) -> Floats:
    """(groups, 2 · arms): sums of each arm's own completion tokens, and their number.

    A call that failed has no completion, whatever it states.
    """
    arm, arms, groups = steps.answered(names), len(names), int(group.max()) + 1
    known = ~np.isnan(steps.completion) & (arm >= 0) & ~steps.failed
    place = group[known] * arms + arm[known]
    sums = np.bincount(place, steps.completion[known], groups * arms).reshape(groups, arms)
    counts = np.bincount(place, minlength=groups * arms).reshape(groups, arms)
    return np.concatenate([sums, counts], axis=1).astype(np.float64)


def _columns(costs: StepCosts, group: Ints, arms: int) -> Floats:
    """(groups, 2 + arms): least and most USD that are known, and steps of each foreign arm."""
    size = int(group.max()) + 1
    own = np.where(costs.foreign, 0.0, costs.output)
    least = np.bincount(group, weights=costs.prompt_least + own, minlength=size)
    most = np.bincount(group, weights=costs.prompt_most + own, minlength=size)
    place = group[costs.foreign] * arms + costs.arm[costs.foreign]
    foreign = np.bincount(place, minlength=size * arms).reshape(size, arms)
    return np.concatenate([least[:, None], most[:, None], foreign], axis=1)


def _each(part: Floats, means: Floats, trials: Floats) -> Floats:
    """(rows, 2) least and most USD per trajectory; estimates of foreign completions included."""
    foreign = part[:, 2:]
    added = np.where(foreign > 0, foreign * means, 0.0).sum(axis=1)
    return np.asarray((part[:, :2] + added[:, None]) / trials[:, None])


def assumptions(steps: Trajectories, arms: Sequence[str]) -> list[str]:
    """What a replay takes for granted of these steps, one sentence each."""
    said = [
        "each trajectory would have been the same under every policy: same steps, prompts and "
        "times; whether another arm would have succeeded is not said",
        "prompts are as long in every arm's tokens",
    ]
    reads = first_reads(steps)
    if reads.any():
        said.append(
            f"{int((reads > 0).sum()):,} trajectories read {reads.sum():,.0f} tokens in their "
            "first call, which other traffic left in the cache: a bound for arms that gain these "
            "calls or lose others"
        )
    else:
        said.append("each trajectory starts with an empty cache")
    if (count := int(np.isnan(steps.read[steps.first]).sum())) and reads.any():
        said.append(
            f"{count:,} first calls do not say what they read from the cache: taken as nothing, "
            "which is the most that they can cost"
        )
    if count := int(steps.failed.sum()):
        said.append(
            f"{count:,} calls failed: they cost what their tokens say under the recorded arm, "
            "another arm is taken to answer them, and no arm's mean completion counts them"
        )
    if count := int(steps.assumed.sum()):
        said.append(
            f"{count:,} prompts without a recorded parent extend the one before, as they do not "
            "shrink"
        )
    middle = (np.diff(steps.chain, prepend=-1) != 0) & ~steps.is_first
    if middle.any():
        said.append(
            f"{int(middle.sum()):,} prompts were rewritten on the way: what they share with "
            "earlier ones is unknown, and bounded"
        )
    if count := int(np.isnan(steps.time).sum()):
        said.append(
            f"{count:,} steps have no time: whether a cache was still there is unknown, and bounded"
        )
    return said


# What a policy saves on recorded traffic, day by day, and from which day on it stops paying.

DAY = 86_400
#: Prices in force from a second on, in order of time.
Periods = Sequence[tuple[float, Mapping[str, ArmPrice]]]


@dataclass(frozen=True, slots=True)
class DaySaving:
    """One day of trajectories, by their first call; USD.

    Attributes:
        recorded: USD as the log itself states them of the same trajectories; None where it lacks
            the cost of a call.
        modelled, routed: USD that the recorded arms and the policy cost by the prices and cache
            rules, of the trajectories whose cost is known under both; where the cache is uncertain,
            the middle of its bounds. None where no such trajectory is known.
        saved: Modelled minus routed cost of the day with its 95 % interval, tasks resampled; None
            where those are. The ends allow for as much and as little cache as is possible,
            and for completions of arms that did not answer.
        untold: Trajectories whose cost under either policy is unknown; left out.
    """

    day: str
    trajectories: int
    recorded: float | None
    modelled: float | None
    routed: float | None
    saved: tuple[float, float, float] | None
    untold: int


@dataclass(frozen=True, slots=True)
class Savings:
    """Savings of all days together and of each.

    Attributes:
        stops: Day before which savings so far were at their highest, if the policy surely costs
            more from then to the end (95 %; the day was chosen by the same data); else None.
        pays: Whether the whole saving is surely above 0, surely below, or cannot be told, as where
            the cost of some trajectories is unknown.
    """

    total: DaySaving
    days: tuple[DaySaving, ...]
    stops: str | None
    pays: str


def savings(
    steps: Trajectories,
    arm: Ints,
    periods: Periods,
    names: tuple[str, ...],
    *,
    window: tuple[float, float] = (-np.inf, np.inf),
    resamples: int = 1_000,
    seed: int = 0,
) -> Savings:
    """What `arm` saves against the recorded arms, both modelled, by day, at the prices in force.

    Completions of arms that did not answer are the mean of their own completions elsewhere.

    Args:
        window: Only trajectories that begin in these seconds since 1970, the second excluded.
    """
    inside = began_between(steps, *window)
    costs = _paired(steps, arm, periods, names, resamples, seed)[inside]
    days = np.floor(steps.time[steps.first[inside]] / DAY)
    listed = [float(item) for item in np.unique(days[~np.isnan(days)])]
    of_day = [_saving(_name(day), costs[days == day], seed) for day in listed]
    total = _saving("all", costs, seed)
    stops = _stop(days, costs, of_day, seed)
    return Savings(total, tuple(of_day), stops, _pays(total))


@dataclass(frozen=True, eq=False)
class _PairedCosts:
    """Cost of each trajectory under the recorded arms and under the policy, USD.

    Attributes:
        own: (t,) what the log itself states; NaN where it lacks the cost of a call.
        shown: (t, 2) both as modelled, at the middle of what is uncertain.
        least, most: (t,) saved, without completions of arms that did not answer.
        foreign: (t, arms) USD of one more token in each such completion, summed.
        means: (1 + resamples, arms) mean tokens of each arm's own completions, the sample's first.
    """

    own: Floats
    shown: Floats
    least: Floats
    most: Floats
    foreign: Floats
    task: Ints
    means: Floats

    def __getitem__(self, rows: Bools) -> _PairedCosts:
        held = {field.name: getattr(self, field.name)[rows] for field in fields(self)[:-1]}
        return replace(self, **held)


def _paired(
    steps: Trajectories, arm: Ints, periods: Periods, names: tuple[str, ...], resamples: int,
    seed: int,
) -> _PairedCosts:  # fmt: skip
    """Both costs of each trajectory."""
    answered, first = steps.answered(names), steps.first
    sums = [
        np.add.reduceat(item, first)
        for policy in (answered, arm)
        for item in step_usd(steps, policy, periods, names)[:2]
    ]
    price = step_usd(steps, arm, periods, names)[2]
    other = answered != arm
    place = steps.trajectory[other] * len(names) + arm[other]
    foreign = np.bincount(place, price[other], len(first) * len(names)).astype(np.float64)
    foreign = foreign.reshape(len(first), len(names))
    least, most = sums[0] - sums[3], sums[1] - sums[2]
    means = _mean_completions(steps, names, resamples, seed)
    added = np.where(foreign > 0, foreign * means[0], 0.0).sum(axis=1)
    shown = np.stack([(sums[0] + sums[1]) / 2, (sums[2] + sums[3]) / 2 + added], axis=1)
    own = np.add.reduceat(steps.cost, first)
    return _PairedCosts(own, shown, least, most, foreign, steps.task[first], means)


def began_between(steps: Trajectories, start: float, end: float) -> Bools:
    """(trajectories,) whether each begins in these seconds since 1970, the second excluded."""
    began = steps.time[steps.first]
    whole = start == -np.inf and end == np.inf
    return np.asarray(((began >= start) & (began < end)) | whole, dtype=np.bool_)


def _stop(days: Floats, costs: _PairedCosts, of_day: Sequence[DaySaving], seed: int) -> str | None:
    """The day before which savings were at their highest, if it surely loses from then on."""
    upto = np.cumsum([0.0, *(day.saved[0] if day.saved else 0.0 for day in of_day)])
    best = int(np.argmax(upto))
    if best == len(of_day):
        return None
    later = days >= float(np.unique(days[~np.isnan(days)])[best])
    rest = _saving("", costs[later], seed).saved
    return of_day[best].day if rest is not None and rest[2] < 0 else None


def step_usd(
    steps: Trajectories, arm: Ints, periods: Periods, names: tuple[str, ...]
) -> tuple[Floats, Floats, Floats]:
    """(n,) least and most USD of each step at the prices in force when it was sent, and USD of one
    token of its completion; NaN where it is not known.

    A step without time has the first prices. Completions of arms that did not answer are left out.
    """
    least, most, token = np.full((3, len(steps)), np.nan)
    for prices, inside in in_force(steps, periods):
        costs = replay(steps, arm, prices, names)
        price = PriceTable.of(prices, names).output[arm] / 1e6
        own = np.where(costs.foreign, 0.0, costs.output)
        for out, usd in ((least, costs.prompt_least + own), (most, costs.prompt_most + own),
                         (token, price)):  # fmt: skip
            out[inside] = usd[inside]
    return least, most, token


def in_force(
    steps: Trajectories, periods: Periods
) -> Iterator[tuple[Mapping[str, ArmPrice], Bools]]:
    """Prices, and (n,) the steps sent from when they hold on: later ones replace earlier ones."""
    at = np.nan_to_num(steps.time, nan=-np.inf)
    for number, (start, prices) in enumerate(periods):
        yield prices, at >= start if number else np.ones(len(steps), np.bool_)


def _mean_completions(
    steps: Trajectories, names: tuple[str, ...], resamples: int, seed: int
) -> Floats:
    """(1 + resamples, arms) mean completion tokens of each arm's own steps, the sample's first;
    NaN where it never answered."""
    both = _completions(steps, names, steps.task)
    drawn = Draws(len(both), resamples, seed).sums(both)
    both = np.concatenate([both.sum(axis=0)[None], drawn])
    return ratio(both[:, : len(names)], both[:, len(names) :])


def _saving(day: str, costs: _PairedCosts, seed: int) -> DaySaving:
    known = np.asarray(~np.isnan(costs.shown).any(axis=1), dtype=np.bool_)
    cost = costs[known]
    recorded = modelled = routed = saved = None
    if len(cost.shown):
        recorded = None if np.isnan(cost.own).any() else float(cost.own.sum())
        modelled, routed = (float(usd) for usd in cost.shown.sum(axis=0))
        codes = np.unique(cost.task, return_inverse=True)[1]
        used = cost.foreign.any(axis=0)
        columns = (cost.least, cost.most, *cost.foreign[:, used].T)
        parts = [np.bincount(codes, column).astype(np.float64) for column in columns]
        by_task = np.stack(parts, axis=1)
        drawn = Draws(len(by_task), len(cost.means) - 1, seed).sums(by_task)
        added = (drawn[:, 2:] * cost.means[1:, used]).sum(axis=1)
        low, high = (interval(drawn[:, k] - added)[k] for k in (0, 1))
        known_ends = len(by_task) >= FEWEST_TASKS
        saved = (modelled - routed, *((low, high) if known_ends else (np.nan, np.nan)))
    return DaySaving(day, int(known.size), recorded, modelled, routed, saved, int((~known).sum()))


def _pays(total: DaySaving) -> str:
    if total.saved is None or total.untold:
        return "cannot be told"
    _, low, high = total.saved
    return "yes" if low > 0 else "no" if high < 0 else "cannot be told"


def _name(day: float) -> str:
    return str(np.datetime64(int(day), "D"))


# What recorded steps cost by their own token classes, and whether the cache rules predict it.


@dataclass(frozen=True, slots=True)
class UsageCost:
    """USD of the steps whose token classes and prices are known.

    Attributes:
        usd: With each class at its own price.
        fresh: The same steps with all prompt tokens at the price of fresh ones.
        recorded: What the log itself says of these steps, where it says it of all of them.
        known, steps: How many steps that is, and of how many.
    """

    usd: float
    fresh: float
    recorded: float | None
    known: int
    steps: int

    def words(self) -> str:
        """The cost for people."""
        if not self.known:
            return "recorded usage: cached tokens or prices are unknown, so its cost is unknown"
        more = "" if self.recorded is None else f"; the log itself says {self.recorded:.6g}"
        return (
            f"recorded usage: {self.usd:.6g} USD with cached tokens at their own price, "
            f"{self.fresh:.6g} if all were fresh ({self.known:,} of {self.steps:,} steps{more})"
        )


def usage_cost(steps: Trajectories, periods: Periods) -> UsageCost:
    """What the recorded token classes cost at the prices in force; tokens of an unknown class
    leave a step unknown, as does a prompt of fewer tokens than its cached ones.

    A rule without premium has no writes: they cost as fresh tokens do.
    """
    usd, fresh = np.full((2, len(steps)), np.nan)
    for prices, inside in in_force(steps, periods):
        for out, item in zip((usd, fresh), _usage_usd(steps, prices), strict=True):
            out[inside] = item[inside]
    known = ~np.isnan(usd)
    recorded = steps.cost[known]
    return UsageCost(
        float(usd[known].sum()),
        float(fresh[known].sum()),
        None if not len(recorded) or np.isnan(recorded).any() else float(recorded.sum()),
        int(known.sum()),
        len(steps),
    )


def _usage_usd(steps: Trajectories, prices: Mapping[str, ArmPrice]) -> tuple[Floats, Floats]:
    """(n,) USD of each step by its own token classes, and if all of its prompt were fresh."""
    table = PriceTable.of(prices, steps.arms)
    input_, output = table.input[steps.arm], table.output[steps.arm]
    # A log of a provider that charges nothing for writes does not count them.
    write = np.nan_to_num(steps.write)
    rest = steps.prompt - steps.read - write
    charged = [
        (rest, input_), (steps.read, table.read[steps.arm]), (write, table.write[steps.arm]),
        (steps.completion, output),
    ]  # fmt: skip
    usd = np.sum([np.where(n == 0, 0.0, n * p) for n, p in charged], axis=0) / 1e6
    longest = table.up_to[steps.arm]
    usd = np.where((steps.prompt > longest) | (rest < 0), np.nan, usd)
    return usd, np.asarray((steps.prompt * input_ + steps.completion * output) / 1e6)


@dataclass(frozen=True, slots=True)
class CacheCheck:
    """Cached tokens that the rules predict for the recorded arms, and those that were recorded.

    Attributes:
        later: Steps that follow another of their trajectory; only these can be predicted.
    """

    predicted: float
    recorded: float
    steps: int
    later: int

    def line(self) -> str:
        """The comparison in one sentence."""
        if not self.later:
            return (
                f"check: the log has {self.recorded:,.0f} cached tokens in {self.steps:,} steps; "
                "the rules cannot be compared with it, as no call follows another of its session"
            )
        off = (
            f"{self.predicted / self.recorded - 1:+.1%}" if self.recorded else "none were recorded"
        )
        return (
            f"check: the rules predict {self.predicted:,.0f} cached tokens for the recorded arms, "
            f"the log has {self.recorded:,.0f} in {self.steps:,} steps ({off})"
        )


def cache_check(steps: Trajectories, prices: Mapping[str, ArmPrice]) -> CacheCheck | None:
    """The rules against the log; None where no step says how much was read from a cache."""
    known = ~np.isnan(steps.read)
    if not known.any():
        return None
    predicted = replay(steps, steps.arm, prices, steps.arms, shared=False).read_most
    later = ~steps.is_first
    return CacheCheck(
        float(predicted[known].sum()), float(steps.read[known].sum()), int(known.sum()),
        int((later & known).sum()),
    )  # fmt: skip
