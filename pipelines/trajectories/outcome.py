"""Cost of whole policies with intervals by task, and what of it is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.metrics.bootstrap import Draws, interval
from routeyard.pipelines.trajectories.arrays import Trajectories
from routeyard.pipelines.trajectories.caches import ArmPrice
from routeyard.pipelines.trajectories.replay import StepCosts, first_reads, replay

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
    group = _groups(steps, seed)
    output = np.array([price_of(prices, name).output for name in names], dtype=np.float64)
    answered = np.array([names.index(name) if name in names else -1 for name in steps.arms])
    own = _completions(steps, answered[steps.arm], len(names), group)
    columns, whole = [], []
    for name, arm in policies.items():
        costs = replay(steps, arm, prices, names)
        whole.append(_Totals.of(name, steps, costs, own.sum(axis=0), len(names)))
        columns.append(_columns(costs, group, len(names)))
        del costs
    trials = np.bincount(group, weights=_firsts(steps))[:, None]
    stacked = np.concatenate([own, trials, *columns], axis=1)
    drawn = Draws(len(stacked), resamples, seed).sums(stacked)
    everything = np.concatenate([stacked.sum(axis=0)[None], drawn])  # the sample itself first
    split = np.split(everything, np.cumsum([own.shape[1], 1] + [c.shape[1] for c in columns])[:-1],
                     axis=1)  # fmt: skip
    means = _mean_output(split[0], len(names)) * output / 1e6
    each = [_each(part, means, split[1][:, 0]) for part in split[2:]]
    return [
        total.with_intervals(mine, each[0], int(trials.sum()), len(steps.tasks))
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
    columns = [np.bincount(group, one) for one in (steps.cost, _firsts(steps))]
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


def price_of(prices: Mapping[str, ArmPrice], name: str) -> ArmPrice:
    """The price of an arm; all unknown where none is stated."""
    return prices.get(name, ArmPrice(None, None))


@dataclass(frozen=True)
class _Totals:
    """What needs no resampling."""

    policy: str
    steps: int
    switches: int
    lost: float
    read: float
    prompt: float
    estimated: int
    untold: Mapping[str, int]
    known: float

    @classmethod
    def of(
        cls, name: str, steps: Trajectories, costs: StepCosts, own: Floats, arms: int
    ) -> _Totals:
        answers = own[arms:]
        never = costs.foreign & (answers[costs.arm] == 0)
        no_price = np.isnan(costs.prompt_most) & ~np.isnan(steps.prompt)
        untold = {
            "no prompt tokens are recorded": int(np.isnan(steps.prompt).sum()),
            "a price is not known": int(no_price.sum()),
            "no completion tokens are recorded": int(
                (~costs.foreign & np.isnan(steps.completion)).sum()
            ),
            "the arm never answered, so its completions are unknown": int(never.sum()),
        }
        return cls(
            name, len(steps), int(costs.switch.sum()), float(np.nansum(costs.lost)),
            float(np.nansum(costs.read_most)), float(np.nansum(steps.prompt)),
            int((costs.foreign & ~never).sum()),
            {why: count for why, count in untold.items() if count},
            float(np.nansum(costs.prompt_least) + np.nansum(costs.output)),
        )  # fmt: skip

    def with_intervals(self, each: Floats, first: Floats, trials: int, tasks: int) -> PolicyCost:
        """`each` and `first` are (1 + resamples, 2): least and most USD per trajectory."""
        told = not self.untold and not np.isnan(each[0]).any()
        if tasks < FEWEST_TASKS:
            each, first = (np.where(np.arange(len(x))[:, None], np.nan, x) for x in (each, first))
        saved = None
        if told and not np.isnan(first[0]).any():
            low = interval(first[1:, 0] - each[1:, 1])[0]
            high = interval(first[1:, 1] - each[1:, 0])[1]
            saved = (float((first[0] - each[0]).mean()), low, high)
        return PolicyCost(
            policy=self.policy,
            usd=float(each[0].mean() * trials) if told else None,
            bounds=(float(each[0, 0] * trials), float(each[0, 1] * trials)) if told else None,
            each=(float(each[0].mean()), interval(each[1:, 0])[0], interval(each[1:, 1])[1])
            if told
            else None,
            saved=saved,
            known=self.known,
            steps=self.steps,
            switches=self.switches,
            lost=self.lost,
            read_tokens=self.read,
            prompt_tokens=self.prompt,
            estimated=self.estimated,
            untold=self.untold,
        )


def _groups(steps: Trajectories, seed: int) -> Ints:
    """(n,) what is resampled: the task, or one of many groups of tasks put together at random."""
    tasks = len(steps.tasks)
    if tasks <= MOST_GROUPS:
        return steps.task
    drawn = np.random.default_rng(seed).permutation(tasks) % MOST_GROUPS
    return np.asarray(drawn[steps.task])


def _firsts(steps: Trajectories) -> Floats:
    return np.diff(steps.trajectory, prepend=-1).astype(np.float64)


def _completions(steps: Trajectories, arm: Ints, arms: int, group: Ints) -> Floats:
    """(groups, 2 · arms): sums of each arm's own completion tokens, and their number."""
    known = ~np.isnan(steps.completion) & (arm >= 0)
    size = int(group.max()) + 1
    place = group[known] * arms + arm[known]
    sums = np.bincount(place, weights=steps.completion[known], minlength=size * arms)
    counts = np.bincount(place, minlength=size * arms)
    return np.concatenate([sums.reshape(size, arms), counts.reshape(size, arms)], axis=1)


def _columns(costs: StepCosts, group: Ints, arms: int) -> Floats:
    """(groups, 2 + arms): least and most USD that are known, and steps of each foreign arm."""
    size = int(group.max()) + 1
    own = np.where(costs.foreign, 0.0, costs.output)
    least = np.bincount(group, weights=costs.prompt_least + own, minlength=size)
    most = np.bincount(group, weights=costs.prompt_most + own, minlength=size)
    place = group[costs.foreign] * arms + costs.arm[costs.foreign]
    foreign = np.bincount(place, minlength=size * arms).reshape(size, arms)
    return np.concatenate([least[:, None], most[:, None], foreign], axis=1)


def _mean_output(own: Floats, arms: int) -> Floats:
    """(rows, arms) mean completion tokens of each arm; NaN where it never answered."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(own[:, :arms] / own[:, arms:])


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
    began = np.flatnonzero(np.diff(steps.trajectory, prepend=-1))
    if (count := int(np.isnan(steps.read[began]).sum())) and reads.any():
        said.append(
            f"{count:,} first calls do not say what they read from the cache: taken as nothing, "
            "which is the most that they can cost"
        )
    if count := int(steps.assumed.sum()):
        said.append(
            f"{count:,} prompts without a recorded parent extend the one before, as they do not "
            "shrink"
        )
    middle = np.diff(steps.chain, prepend=-1).astype(bool)
    middle[np.flatnonzero(np.diff(steps.trajectory, prepend=-1))] = False
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
