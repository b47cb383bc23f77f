"""What a policy saves on recorded traffic, day by day, and from which day on it stops paying."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints, ratio
from routeyard.pipelines.metrics.bootstrap import Draws, interval
from routeyard.pipelines.trajectories.arrays import Trajectories
from routeyard.pipelines.trajectories.caches import ArmPrice
from routeyard.pipelines.trajectories.outcome import FEWEST_TASKS
from routeyard.pipelines.trajectories.replay import replay

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
    between: tuple[float, float] = (-np.inf, np.inf),
    resamples: int = 1_000,
    seed: int = 0,
) -> Savings:
    """What `arm` saves against the recorded arms, both modelled, by day, at the prices in force.

    Completions of arms that did not answer are the mean of their own completions elsewhere.

    Args:
        between: Only trajectories that begin in these seconds since 1970, the second excluded.
    """
    first = np.flatnonzero(np.diff(steps.trajectory, prepend=-1))
    inside = began_between(steps, *between)
    costs = _paired(steps, arm, periods, names, resamples, seed)[inside]
    days = np.floor(steps.time[first[inside]] / DAY)
    listed = [float(one) for one in np.unique(days[~np.isnan(days)])]
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
        return _PairedCosts(
            self.own[rows], self.shown[rows], self.least[rows], self.most[rows],
            self.foreign[rows], self.task[rows], self.means,
        )  # fmt: skip


def _paired(
    steps: Trajectories, arm: Ints, periods: Periods, names: tuple[str, ...], resamples: int,
    seed: int,
) -> _PairedCosts:  # fmt: skip
    """Both costs of each trajectory."""
    answered = np.array([names.index(name) for name in steps.arms])[steps.arm]
    first = np.flatnonzero(np.diff(steps.trajectory, prepend=-1))
    sums = [
        np.add.reduceat(one, first)
        for policy in (answered, arm)
        for one in step_usd(steps, policy, periods, names)[:2]
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
    began = steps.time[np.flatnonzero(np.diff(steps.trajectory, prepend=-1))]
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
        price = np.array([_output(prices, name) for name in names])[arm] / 1e6
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


def break_even(
    steps: Trajectories,
    arm: Ints,
    periods: Periods,
    names: tuple[str, ...],
    *,
    between: tuple[float, float] = (-np.inf, np.inf),
) -> dict[str, float]:
    """Arm that `arm` pays more for than was recorded → factor on all of its prices at which `arm`
    saves nothing, the others' prices as they are; of trajectories with both costs known.

    What is saved falls linearly with that factor, so no simulation is needed.
    """
    answered = np.array([names.index(name) for name in steps.arms])[steps.arm]
    means = _mean_completions(steps, names, 1, 0)[0]
    usd = []
    for policy in (answered, arm):
        least, most, token = step_usd(steps, policy, periods, names)
        usd.append((least + most) / 2 + np.where(policy != answered, token * means[policy], 0.0))
    unknown = np.zeros(int(steps.trajectory[-1]) + 1)
    np.add.at(unknown, steps.trajectory, np.isnan(usd[0]) | np.isnan(usd[1]))
    told = ((unknown == 0) & began_between(steps, *between))[steps.trajectory]
    recorded, routed = (
        np.bincount(policy[told], one[told], len(names))
        for policy, one in zip((answered, arm), usd, strict=True)
    )
    saved, more = recorded.sum() - routed.sum(), routed - recorded
    factors = {name: 1 + saved / more[k] for k, name in enumerate(names) if more[k] > 1e-12}
    return {name: float(one) for name, one in factors.items() if one > 0}


def _mean_completions(
    steps: Trajectories, names: tuple[str, ...], resamples: int, seed: int
) -> Floats:
    """(1 + resamples, arms) mean completion tokens of each arm's own steps, the sample's first;
    NaN where it never answered."""
    codes = np.array([names.index(name) for name in steps.arms])[steps.arm]
    known = ~np.isnan(steps.completion)
    place, size = steps.task[known] * len(names) + codes[known], len(steps.tasks) * len(names)
    sums = np.bincount(place, steps.completion[known], size).reshape(-1, len(names))
    counts = np.bincount(place, minlength=size).reshape(-1, len(names))
    both = np.concatenate([sums, counts], axis=1).astype(np.float64)
    drawn = Draws(len(both), resamples, seed).sums(both)
    both = np.concatenate([both.sum(axis=0)[None], drawn])
    return ratio(both[:, : len(names)], both[:, len(names) :])


def _output(prices: Mapping[str, ArmPrice], name: str) -> float:
    found = prices[name].output if name in prices else None
    return float("nan") if found is None else found


def _saving(day: str, costs: _PairedCosts, seed: int) -> DaySaving:
    known = np.asarray(~np.isnan(costs.shown).any(axis=1), dtype=np.bool_)
    told = costs[known]
    recorded = modelled = routed = saved = None
    if len(told.shown):
        recorded = None if np.isnan(told.own).any() else float(told.own.sum())
        modelled, routed = (float(usd) for usd in told.shown.sum(axis=0))
        codes = np.unique(told.task, return_inverse=True)[1]
        used = told.foreign.any(axis=0)
        columns = (told.least, told.most, *told.foreign[:, used].T)
        parts = [np.bincount(codes, one).astype(np.float64) for one in columns]
        by_task = np.stack(parts, axis=1)
        drawn = Draws(len(by_task), len(told.means) - 1, seed).sums(by_task)
        added = (drawn[:, 2:] * told.means[1:, used]).sum(axis=1)
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
