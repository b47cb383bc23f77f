"""`routeyard arms`: what more effort, a longer answer or more samples gain, lose and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.extensions.traffic.outcome import (
    CacheCheck,
    PolicyCost,
    UsageCost,
    assumptions,
    cache_check,
    policy_costs,
    stated_cost,
    usage_cost,
)
from routeyard.extensions.traffic.reading import arm_prices, arms_in, read_steps, with_ends
from routeyard.extensions.traffic.replay import (
    StepFinding,
    SufficientArms,
    Trajectories,
    audit_steps,
    policy_arms,
    sufficient_arms,
    trajectories_of,
)
from routeyard.pipelines.common.trajectories import ArmPrice, cache_rule
from routeyard.pipelines.evaluate.cascade import AxisStep, axis_steps
from routeyard.schemas.errors import BadInput

# `routeyard replay`: recorded steps under stated policies of arms, with what it rests on.

#: Name of the recorded arms' cost where prices and cache rules tell it, not the log.
MODELLED = "recorded, modelled"


@dataclass(frozen=True)
class ReplayReport:
    """Costs of policies over recorded steps, and everything they rest on.

    Attributes:
        costs: Of each policy, modelled; before the recorded arms' what the log states of them.
        usage: What the log's own token classes cost at the stated prices.
        check: Cached tokens that replaying the recorded arms predicts, beside the recorded ones.
        sufficient: The cheapest arm that sufficed, where several were executed.
    """

    steps: int
    trajectories: int
    tasks: int
    costs: list[PolicyCost]
    usage: UsageCost
    check: CacheCheck | None
    sufficient: SufficientArms
    prices: Mapping[str, ArmPrice]
    assumptions: list[str]
    findings: list[StepFinding]
    doubts: list[str]

    def data(self) -> dict[str, Any]:
        """The report as plain values."""
        from dataclasses import asdict

        return asdict(self)

    def lines(self) -> Iterator[str]:
        """The report for people."""
        yield f"{self.trajectories:,} trajectories of {self.tasks:,} tasks, {self.steps:,} steps"
        yield from (f"audit: {one}" for one in self.findings)
        yield from (f"note: {one}" for one in self.doubts)
        yield from self.usage.lines()
        first = next(one for one in self.costs if one.policy != "recorded")
        width = max(len(one.policy) for one in self.costs)
        yield (
            f"{'policy':<{width}} {'USD':>12} {'USD per trajectory (95 %)':>34} "
            f"{'saved per trajectory (95 %)':>34} {'cached':>7} {'switches':>9} {'lost USD':>9}"
        )
        for one in self.costs:
            share = one.read_tokens / one.prompt_tokens if one.prompt_tokens else 0.0
            yield (
                f"{one.policy:<{width}} {_total(one):>12} {_interval(one.each):>34} "
                f"{'–' if one in (first, self.costs[0]) else _interval(one.saved):>34} "
                f"{share:>7.1%} "
                f"{one.switches:>9,} {one.lost:>9.4g}"
            )
        for one in self.costs:
            yield from _unknown(one)
        yield from self._sides(first.policy)
        yield from self.sufficient.lines()
        if self.check is not None:
            yield self.check.line()
        yield "assumed:"
        yield from (f"  {one}" for one in self.assumptions)

    def _sides(self, first: str) -> Iterator[str]:
        """What `recorded` and `saved` are, where both could be taken for another figure."""
        stated = any(one.policy == "recorded" for one in self.costs)
        if stated:
            yield "recorded: USD as the log itself states; all else is modelled by prices and rules"
        if len(self.costs) > 1 + stated:
            yield f"saved: less than {first!r}, both modelled"


def replay_steps(
    path: Path,
    policies: Sequence[str],
    *,
    pool: Path | None = None,
    caches: Sequence[str] = (),
    session: str | None = None,
    resamples: int = 1_000,
    seed: int = 0,
) -> ReplayReport:
    """What recorded steps would have cost under other policies of arms.

    Args:
        path: A release with `steps`, the folder of an import, a Parquet file of steps, or a log.
        policies: Forms of `FORMS`; the first is what the others are compared with.
        pool: File with prices of the arms.
        caches: `ARM=RULE` each, in place of the rule of the arm's provider.

    Raises:
        BadInput: there are no steps or no prices, or a policy cannot be read.
    """
    recorded = read_steps(path, session=session)
    steps = trajectories_of(recorded.steps)
    prices = arm_prices(recorded.models, pool, caches, arms_in(policies, steps.arms))
    if not prices:
        raise BadInput(
            "no prices are known",
            where=str(path),
            next_step="give a file of models with price_in, price_out, price_cache_read and "
            "price_cache_write (USD per 10^6 tokens): --pool pool.yaml",
        )
    names = tuple(sorted({*prices, *steps.arms}))
    chosen = {text: policy_arms(text, steps, names, recorded.steps) for text in policies}
    draws = {"resamples": resamples, "seed": seed}
    costs = list(_named(steps, policy_costs(steps, chosen, prices, names, **draws), **draws))
    return ReplayReport(
        steps=len(steps),
        trajectories=int(steps.trajectory[-1]) + 1,
        tasks=len(steps.tasks),
        costs=costs,
        usage=usage_cost(steps, [(-np.inf, prices)]),
        check=cache_check(steps, prices),
        sufficient=sufficient_arms(recorded.steps),
        prices=prices,
        assumptions=[*assumptions(steps, names), *_rules(prices, chosen, names)],
        findings=audit_steps(recorded.steps),
        doubts=list(recorded.doubts),
    )


def _named(steps: Trajectories, costs: Sequence[PolicyCost], **draws: int) -> Iterator[PolicyCost]:
    """The costs, with `recorded` for what the log states and `recorded, modelled` for the rest."""
    for one in costs:
        if one.policy == "recorded":
            if (stated := stated_cost(steps, one, **draws)) is not None:
                yield stated
            one = replace(one, policy=MODELLED)
        yield one


def _rules(
    prices: Mapping[str, ArmPrice], chosen: Mapping[str, Any], names: Sequence[str]
) -> Iterator[str]:
    """Prices and cache rule of each arm that a policy uses."""
    used = sorted({names[k] for arms in chosen.values() for k in np.unique(arms)})
    for name in used:
        price = prices.get(name)
        if price is None:
            yield f"{name}: no price is stated"
            continue
        rule = cache_rule(price.rule)
        stated = {"in": price.input, "out": price.output, "read": price.read, "write": price.write}
        told = ", ".join(f"{word} {usd:g}" for word, usd in stated.items() if usd is not None)
        where = f" ({price.source})" if price.source else ""
        long = "" if price.up_to is None else f", for prompts up to {price.up_to:,} tokens"
        yield (
            f"{name}: USD per 10^6 tokens {told}{long}{where}; cache {rule.name} ({rule.source})"
        )


def _total(one: PolicyCost) -> str:
    if one.usd is None or one.bounds is None:
        return "unknown"
    low, high = one.bounds
    return f"{one.usd:.4g}" if high - low <= 1e-9 * high else f"{low:.4g}–{high:.4g}"


def _interval(estimate: tuple[float, float, float] | None) -> str:
    return "unknown" if estimate is None else with_ends(estimate)


def _unknown(one: PolicyCost) -> Iterator[str]:
    if one.estimated:
        yield (
            f"{one.policy}: completions of {one.estimated:,} of {one.steps:,} steps are estimated "
            "from the arm's own answers to other steps"
        )
    for why, count in one.untold.items():
        yield f"{one.policy}: unknown in {count:,} of {one.steps:,} steps: {why}"
    if one.untold and one.known:
        yield f"{one.policy}: what is known of it costs {one.known:.4g} USD"


#: Tasks with questions that flip back, shown for each step.
SHOWN = 5


@dataclass(frozen=True)
class ArmsReport:
    """Steps along the axes of a release's arms.

    Attributes:
        cannot: What the release cannot tell of them, one sentence each.
    """

    steps: list[AxisStep]
    cannot: list[str]

    def data(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self) | {"monotone": {" ".join(k): v for k, v in self._monotone().items()}}

    def lines(self) -> Iterator[str]:
        """The report for people."""
        for line, said in self._monotone().items():
            model, axis, fixed = line
            yield f"{model}, {axis}{f' ({fixed})' if fixed else ''}: {said}"
            for one in self.steps:
                if (one.model, one.axis, one.fixed) == line:
                    yield from _step(one)
        yield from self.cannot

    def _monotone(self) -> dict[tuple[str, str, str], str]:
        """(model, axis, other axes) → whether more is better all along."""
        lines: dict[tuple[str, str, str], list[AxisStep]] = {}
        for one in self.steps:
            lines.setdefault((one.model, one.axis, one.fixed), []).append(one)
        found = {}
        for line, steps in lines.items():
            rises = [one.rises for one in steps]
            falls = [" → ".join(one.names) for one in steps if one.rises is False]
            if falls:
                found[line] = f"more is not always better: it falls from {', '.join(falls)}"
            elif all(rises):
                found[line] = "more is better at every step"
            else:
                unclear = [" → ".join(one.names) for one in steps if one.rises is None]
                found[line] = f"whether more is better is unknown from {', '.join(unclear)}"
        return found


def _step(one: AxisStep) -> Iterator[str]:
    cost = "cost unknown" if one.cost is None else f"{with_ends(one.cost)} USD a question"
    point = "" if one.per_point is None else f", {with_ends(one.per_point)} USD a right answer"
    yield (
        f"  {one.names[0]} → {one.names[1]}: {one.less:.3f} → {one.more:.3f} "
        f"(gain {with_ends(one.gain)}), {one.gained:.1%} gained, {one.flipped_back:.1%} flip "
        f"back; {cost}{point}; {one.questions:,} questions"
    )
    shown = [f"{task} {count} ({', '.join(ids)})" for task, (count, ids) in one.back.items()]
    if shown:
        more = f"; {len(shown) - SHOWN} more tasks" if len(shown) > SHOWN else ""
        yield f"    flip back: {'; '.join(shown[:SHOWN])}{more}"


def arms_report(release: Path, *, resamples: int = 2_000) -> ArmsReport:
    """Each step along each axis of the arms of a release's pool.

    Raises:
        BadInput: the pool has no arms.
    """
    from routeyard.flows.evaluation.released import read_release
    from routeyard.pipelines.common.matrix import core_of

    tables = read_release(release)
    core = core_of(tables.without("embeddings"))
    steps = axis_steps(tables["models"].to_pylist(), core, resamples=resamples, seed=0)
    if not steps:
        raise BadInput(
            "no two members of the pool are one model asked with less and with more effort, output "
            "or samples",
            where=str(release),
            next_step="declare axes in the pool, such as `axes: {effort: [low, medium, high]}`",
        )
    cannot = []
    if core.samples is None:
        cannot.append(
            "One answer of each arm: a question that flips back may do so by chance; ask for "
            "`samples` to tell."
        )
    if any(one.cost is None for one in steps):
        cannot.append("Costs are not known of every answer: state prices, cached tokens included.")
    return ArmsReport(steps, cannot)
