"""What a policy saves on recorded traffic, day by day, and from which day on it stops paying."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints
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
        saved: Recorded minus routed cost of the day with its 95 % interval, tasks resampled; None
            where a cost is unknown.
        untold: Trajectories whose cost under either policy cannot be told; left out.
    """

    day: str
    trajectories: int
    recorded: float
    routed: float
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
    """What `arm` saves against the recorded arms, by day, at the prices in force.

    Completions of arms that did not answer are the mean of their own completions elsewhere.

    Args:
        between: Only trajectories that begin in these seconds since 1970, the second excluded.
    """
    answered = np.array([names.index(name) for name in steps.arms])[steps.arm]
    recorded = step_usd(steps, answered, periods, names)
    routed = step_usd(steps, arm, periods, names)
    first = np.flatnonzero(np.diff(steps.trajectory, prepend=-1))
    cost = np.stack([np.add.reduceat(one, first) for one in (recorded, routed)], axis=1)
    inside = began_between(steps, *between)
    cost, first = cost[inside], first[inside]
    days = np.floor(steps.time[first] / DAY)
    task = steps.task[first]
    listed = [float(one) for one in np.unique(days[~np.isnan(days)])]
    of_day = [
        _saving(_name(day), cost[days == day], task[days == day], resamples, seed) for day in listed
    ]
    total = _saving("all", cost, task, resamples, seed)
    stops = _stop(days, cost, task, of_day, resamples, seed)
    return Savings(total, tuple(of_day), stops, _pays(total))


def began_between(steps: Trajectories, start: float, end: float) -> Bools:
    """(trajectories,) whether each begins in these seconds since 1970, the second excluded."""
    began = steps.time[np.flatnonzero(np.diff(steps.trajectory, prepend=-1))]
    whole = start == -np.inf and end == np.inf
    return np.asarray(((began >= start) & (began < end)) | whole, dtype=np.bool_)


def _stop(
    days: Floats, cost: Floats, task: Ints, of_day: Sequence[DaySaving], resamples: int, seed: int
) -> str | None:
    """The day before which savings were at their highest, if it surely loses from then on."""
    upto = np.cumsum([0.0, *(day.saved[0] if day.saved else 0.0 for day in of_day)])
    best = int(np.argmax(upto))
    if best == len(of_day):
        return None
    later = days >= float(np.unique(days[~np.isnan(days)])[best])
    rest = _saving("", cost[later], task[later], resamples, seed).saved
    return of_day[best].day if rest is not None and rest[2] < 0 else None


def step_usd(steps: Trajectories, arm: Ints, periods: Periods, names: tuple[str, ...]) -> Floats:
    """(n,) USD of each step at the prices in force when it was sent; NaN where it is not known.

    A step without time has the first prices. Where the cache is uncertain the mean of both ends
    is taken.
    """
    found = np.full(len(steps), np.nan)
    at = np.nan_to_num(steps.time, nan=-np.inf)
    means = _mean_completions(steps, names)
    for number, (start, prices) in enumerate(periods):
        inside = at >= start if number else np.ones(len(steps), bool)
        costs = replay(steps, arm, prices, names)
        prompt = (costs.prompt_least + costs.prompt_most) / 2
        price = np.array([_output(prices, name) for name in names])
        foreign = means[arm] * price[arm] / 1e6
        usd = prompt + np.where(costs.foreign, foreign, costs.output)
        found[inside] = usd[inside]
    return found


def _mean_completions(steps: Trajectories, names: tuple[str, ...]) -> Floats:
    """(arms,) mean completion tokens of each arm's own steps; NaN where it never answered."""
    codes = np.array([names.index(name) for name in steps.arms])[steps.arm]
    known = ~np.isnan(steps.completion)
    sums = np.bincount(codes[known], steps.completion[known], len(names))
    counts = np.bincount(codes[known], minlength=len(names))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _output(prices: Mapping[str, ArmPrice], name: str) -> float:
    found = prices[name].output if name in prices else None
    return float("nan") if found is None else found


def _saving(day: str, cost: Floats, task: Ints, resamples: int, seed: int) -> DaySaving:
    known = np.asarray(~np.isnan(cost).any(axis=1), dtype=np.bool_)
    cost, task = cost[known], task[known]
    saved = None
    if len(cost):
        each = cost[:, 0] - cost[:, 1]
        codes = np.unique(task, return_inverse=True)[1]
        by_task = np.bincount(codes, each).astype(np.float64)
        drawn = Draws(len(by_task), resamples, seed).sums(by_task[:, None])[:, 0]
        known_ends = len(by_task) >= FEWEST_TASKS
        saved = (float(each.sum()), *(interval(drawn) if known_ends else (np.nan, np.nan)))
    return DaySaving(
        day, int(known.size), float(cost[:, 0].sum()), float(cost[:, 1].sum()), saved,
        int((~known).sum()),
    )  # fmt: skip


def _pays(total: DaySaving) -> str:
    if total.saved is None or total.untold:
        return "cannot be told"
    _, low, high = total.saved
    return "yes" if low > 0 else "no" if high < 0 else "cannot be told"


def _name(day: float) -> str:
    return str(np.datetime64(int(day), "D"))
