"""`routeyard shadow`: what a router would have cost and achieved on a gateway's log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from routeyard.flows.traffic.achieved import Achieved, achieved, propensities_of
from routeyard.flows.traffic.reading import (
    RecordedSteps,
    arm_prices,
    arms_in,
    day_second,
    priced_from,
    read_steps,
    with_ends,
)
from routeyard.pipelines.arrays import Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.trajectories.arrays import Trajectories, trajectories_of
from routeyard.pipelines.trajectories.audit import StepFinding, audit_steps
from routeyard.pipelines.trajectories.daily import DaySaving, Savings, began_between, savings
from routeyard.pipelines.trajectories.outcome import assumptions
from routeyard.pipelines.trajectories.policies import policy_arms
from routeyard.pipelines.trajectories.recorded import CacheCheck, UsageCost, cache_check, usage_cost


@dataclass(frozen=True)
class ShadowReport:
    """One page about a router on a log.

    Attributes:
        shares: Arm → share of the steps that the log and the router give it.
        cannot: What this log cannot tell, one sentence each.
        after: Day from which the router is judged; None for the whole log.
        past: Router → what it saved before that day, where one was chosen.
    """

    router: str
    steps: int
    trajectories: int
    tasks: int
    shares: Mapping[str, tuple[float, float]]
    usage: UsageCost
    savings: Savings
    achieved: Achieved
    check: CacheCheck | None
    findings: list[StepFinding]
    cannot: list[str]
    assumptions: list[str]
    after: str | None = None
    past: Mapping[str, DaySaving] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """The page, in Markdown."""
        yield f"# {self.router} in the shadow of a log"
        yield ""
        yield f"{self.trajectories:,} trajectories of {self.tasks:,} tasks, {self.steps:,} calls."
        yield from (f"- audit: {one}" for one in self.findings)
        yield from (f"- {one}" for one in self.usage.lines())
        yield ""
        yield "| arm | calls in the log | calls of the router |"
        yield "| --- | ---: | ---: |"
        for arm, (logged, routed) in self.shares.items():
            yield f"| {arm} | {logged:.1%} | {routed:.1%} |"
        yield from self._cost()
        yield from self._outcomes()
        yield from ("", "## What this log cannot tell", "")
        yield from (f"- {one}" for one in self.cannot)
        yield from ("", "## What is assumed", "")
        yield from (f"- {one}" for one in self.assumptions)

    def _cost(self) -> Iterator[str]:
        total = self.savings.total
        yield from ("", "## Would it have been cheaper?", "")
        if self.after is not None:
            yield f"Judged on trajectories from {self.after} on, which nothing was chosen by."
            for name, day in self.past.items():
                saved = "unknown" if day.saved is None else with_ends(day.saved)
                yield f"Before, {name} saved {saved} USD on {day.trajectories:,} trajectories."
            yield ""
        if total.saved is None:
            yield "It cannot be told: no trajectory's cost is known under both."
        else:
            known = total.trajectories - total.untold
            part = f"Of {known:,} trajectories with a known cost: r" if total.untold else "R"
            yield (
                f"{part}ecorded {total.recorded:.4g} USD, with the router {total.routed:.4g}: "
                f"saved {with_ends(total.saved)} USD. Does it pay? "
                f"{self.savings.pays.capitalize()}."
            )
        if self.savings.stops:
            yield (
                f"From {self.savings.stops} on, to the end of the log, it costs more than what was "
                "recorded (95 %; the day was chosen by the same data)."
            )
        yield from ("", "| day | trajectories | recorded USD | router USD | saved USD (95 %) |")
        yield "| --- | ---: | ---: | ---: | ---: |"
        for day in (*self.savings.days, total):
            saved = "unknown" if day.saved is None else with_ends(day.saved)
            lost = f" ({day.untold:,} not told)" if day.untold else ""
            yield (
                f"| {day.day} | {day.trajectories:,}{lost} | {day.recorded:.4g} | "
                f"{day.routed:.4g} | {saved} |"
            )

    def _outcomes(self) -> Iterator[str]:
        found = self.achieved
        yield from ("", "## Would it have been as good?", "")
        if found.logged is None or found.bounds is None or found.agreeing is None:
            yield f"It cannot be told: {found.refused}."
            return
        yield (
            f"{found.with_outcome:,} of {found.trajectories:,} trajectories have an outcome, "
            f"{found.logged:.3f} in the mean. In {found.agreeing:.1%} of them the router chooses "
            f"what was chosen; so its mean lies between {found.bounds[0]:.3f} and "
            f"{found.bounds[1]:.3f}, whatever the other arms would have done."
        )
        if found.estimate is None:
            yield f"No estimate within: {found.refused}."
            return
        yield from ("", "| estimate | mean outcome (95 %) |", "| --- | ---: |")
        for one in (found.estimate.logged, *found.estimate.values):
            yield f"| {one.estimator} | {one.value:.3f} ({one.low:.3f} to {one.high:.3f}) |"
        yield ""
        yield (
            f"Effective sample size {found.estimate.effective:,.0f} of "
            f"{found.estimate.decisions:,} decisions; least propensity "
            f"{found.estimate.least_propensity:.3g}."
        )
        yield from (f"- {one}" for one in found.estimate.cautions)


def shadow(
    logs: Path,
    routers: Sequence[str],
    *,
    pools: Sequence[Path] = (),
    caches: Sequence[str] = (),
    session: str | None = None,
    encoder: str | None = None,
    after: str | None = None,
    propensities: Literal["test", "context"] = "test",
    resamples: int = 1_000,
    seed: int = 0,
) -> ShadowReport:
    """A router's cost and outcomes on a log, with intervals, and what the log cannot tell.

    Args:
        logs: A gateway's log, or steps in any form that `replay_steps` takes.
        routers: A saved router's folder, which reads what users asked; a policy of `FORMS`; or a
            file with an arm for every step. Of several the days before `after` choose one.
        pools: Files with prices; those of a later `price_date` hold from that day on.
        after: Day (ISO 8601) from which the router is judged; null for the whole log.
        propensities: `context` states that they do not depend on earlier outcomes.

    Raises:
        BadInput: no steps, no prices, a router that cannot read this log, several without a day,
            or nothing from that day on.
    """
    saved = [one for one in routers if Path(one).is_dir()]
    recorded = read_steps(logs, session=session, prompts=bool(saved))
    steps = trajectories_of(recorded.steps)
    arms = arms_in([one for one in routers if one not in saved], steps.arms)
    periods = [
        (start, arm_prices(rows, None, caches, arms))
        for start, rows in priced_from(recorded.models, pools)
    ]
    if not periods or not periods[-1][1]:
        raise BadInput(
            "no prices are known",
            where=str(logs),
            next_step="give a file of models with price_in, price_out, price_cache_read and "
            "price_cache_write (USD per 10^6 tokens): --pool pool.yaml",
        )
    names = tuple(sorted({*steps.arms, *(name for _, prices in periods for name in prices)}))
    given = {
        one: _by_router(Path(one), recorded, steps, names, encoder)
        if one in saved
        else policy_arms(one, steps, names, recorded.steps)
        for one in routers
    }
    start = _judged_from(after, routers, steps)
    draws: dict[str, Any] = {"resamples": resamples, "seed": seed}
    chosen, past = _chosen(steps, given, periods, names, start, draws)
    arm, last = given[chosen], periods[-1][1]
    later = began_between(steps, start, np.inf)[steps.trajectory]
    # Outcomes of the past chose the router: they do not judge it.
    judged = replace(steps, outcome=np.where(later, steps.outcome, np.nan))
    found = achieved(
        judged, arm, names, propensities_of(recorded.steps, steps), propensities=propensities,
        **draws,
    )  # fmt: skip
    saving = savings(steps, arm, periods, names, between=(start, np.inf), **draws)
    return ShadowReport(
        router=Path(chosen).name if chosen in saved else chosen,
        steps=len(steps),
        trajectories=int(steps.trajectory[-1]) + 1,
        tasks=len(steps.tasks),
        shares=_shares(steps, arm, names),
        usage=usage_cost(steps, last),
        savings=saving,
        achieved=found,
        check=cache_check(steps, last),
        findings=audit_steps(recorded.steps),
        cannot=_cannot(recorded, steps, arm, names, found, saving),
        assumptions=assumptions(steps, names),
        after=after,
        past=past,
    )


def _judged_from(after: str | None, routers: Sequence[str], steps: Trajectories) -> float:
    """Second from which a router is judged.

    Raises:
        BadInput: it is no day, several routers have none, or nothing is on one side of it.
    """
    if after is None:
        if len(routers) != 1:
            raise BadInput(
                f"{len(routers)} routers, and no day before which one of them is chosen",
                next_step="give one --router, or several with --after 2026-11-03",
            )
        return -np.inf
    start = day_second(after)
    for side, told in ((-np.inf, start), (start, np.inf)):
        if not began_between(steps, side, told).any():
            raise BadInput(
                f"no trajectory begins {'before' if told == start else 'on or after'} {after}",
                where="--after",
                next_step="choose a day within the log",
            )
    return start


def _chosen(
    steps: Trajectories, given: Mapping[str, Ints], periods: Any, names: tuple[str, ...],
    start: float, draws: Mapping[str, Any],
) -> tuple[str, dict[str, DaySaving]]:  # fmt: skip
    """The router that surely saved most before `start`, and what each saved then.

    Only costs choose: what another arm would have achieved is rarely known.
    """
    if start == -np.inf:
        return next(iter(given)), {}
    past = {
        one: savings(steps, arm, periods, names, between=(-np.inf, start), **draws).total
        for one, arm in given.items()
    }
    least = {one: np.nan_to_num(day.saved[1], nan=-np.inf) if day.saved else -np.inf
             for one, day in past.items()}  # fmt: skip
    return max(given, key=lambda one: (least[one], one)), past


def _by_router(
    place: Path, recorded: RecordedSteps, steps: Trajectories, names: tuple[str, ...],
    encoder: str | None,
) -> Ints:  # fmt: skip
    """(n,) arm that a saved router chooses once for each trajectory, by what was asked first."""
    from routeyard.flows.evaluation.choices import choices_of
    from routeyard.pipelines.lexical import NAME as TFIDF

    first = np.flatnonzero(np.diff(steps.trajectory, prepend=-1))
    asked = [recorded.prompts[k] for k in steps.order[first]] if recorded.prompts else []
    lacking = len(first) - sum(bool(one) for one in asked)
    if lacking:
        raise BadInput(
            f"{lacking:,} of {len(first):,} trajectories do not say what was asked, which the "
            "router reads",
            where=str(place),
            next_step="log the messages, or give the router's choices as a file with query_id, "
            "model_id, sample, step and arm",
        )
    chosen = choices_of(place, [str(one) for one in asked], encoder=encoder or TFIDF)
    unpriced = sorted(set(chosen) - set(names))
    if unpriced:
        raise BadInput(f"no price is known of {unpriced[0]!r}, which the router chooses")
    return np.array([names.index(one) for one in chosen])[steps.trajectory]


def _shares(
    steps: Trajectories, arm: Ints, names: tuple[str, ...]
) -> dict[str, tuple[float, float]]:
    logged = np.array([names.index(name) for name in steps.arms])[steps.arm]
    counts = [np.bincount(one, minlength=len(names)) / len(steps) for one in (logged, arm)]
    return {
        name: (float(counts[0][k]), float(counts[1][k]))
        for k, name in enumerate(names)
        if counts[0][k] or counts[1][k]
    }


def _cannot(
    recorded: RecordedSteps, steps: Trajectories, arm: Ints, names: tuple[str, ...],
    found: Achieved, saving: Savings,
) -> list[str]:  # fmt: skip
    """What the log cannot tell of this router, and why."""
    said = list(recorded.doubts)
    logged = np.array([names.index(name) for name in steps.arms])[steps.arm]
    if other := int((logged != arm).sum()):
        said.append(
            f"In {other:,} of {len(steps):,} calls the router chooses an arm that did not answer: "
            "how long its answer would have been is the mean of its others, and whether the "
            "trajectory would have gone the same way is not known."
        )
    if found.refused:
        said.append(f"Outcomes under the router: {found.refused}.")
    if saving.total.untold:
        said.append(
            f"{saving.total.untold:,} trajectories have no known cost: a price, a token count, or "
            "any answer of the arm is missing."
        )
    if np.isnan(steps.read).all():
        said.append("What was read from prompt caches: the log does not record cached tokens.")
    if np.isnan(steps.latency).all():
        said.append("Latency: the log does not record it.")
    said.append("Traffic after the last day of the log, and prices that are not yet known.")
    return said
