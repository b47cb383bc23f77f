"""The page of `routeyard shadow`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from routeyard.flows.traffic.achieved import Achieved
from routeyard.flows.traffic.reading import with_ends
from routeyard.pipelines.trajectories.audit import StepFinding
from routeyard.pipelines.trajectories.daily import DaySaving, Savings
from routeyard.pipelines.trajectories.recorded import CacheCheck, UsageCost


@dataclass(frozen=True)
class ShadowReport:
    """One page about a router on a log.

    Attributes:
        shares: Arm → share of the steps that the log and the router give it.
        cannot: What this log cannot tell, one sentence each.
        after: Day from which the router is judged; None for the whole log.
        past: Router → what it saved before that day, where one was chosen.
        break_even: Arm → factor on its prices at which the router saves nothing.
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
    break_even: Mapping[str, float] = field(default_factory=dict)

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
            yield "It is unknown: no trajectory's cost is known under both."
        else:
            known = total.trajectories - total.untold
            part = f"Of {known:,} trajectories with a known cost: r" if total.untold else "R"
            yield (
                f"{part}ecorded {_usd(total.recorded)} USD by the log itself. By prices and cache "
                f"rules, the recorded arms cost {_usd(total.modelled)} and the router "
                f"{_usd(total.routed)}: saved {with_ends(total.saved)} USD. Does it pay? "
                f"{self.savings.pays.capitalize()}."
            )
        if self.savings.stops:
            yield (
                f"From {self.savings.stops} on, to the end of the log, it costs more than what was "
                "recorded (95 %; the day was chosen by the same data)."
            )
        for arm, factor in self.break_even.items():
            yield (
                f"With the prices of {arm} times about {factor:.3g}, and the others as they are, "
                "it would save nothing."
            )
        yield from ("", "| day | trajectories | recorded USD | modelled USD | router USD | "
                         "saved USD (95 %) |")  # fmt: skip
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        for day in (*self.savings.days, total):
            saved = "unknown" if day.saved is None else with_ends(day.saved)
            lost = f" ({day.untold:,} unknown)" if day.untold else ""
            paid = " | ".join(_usd(usd) for usd in (day.recorded, day.modelled, day.routed))
            yield f"| {day.day} | {day.trajectories:,}{lost} | {paid} | {saved} |"

    def _outcomes(self) -> Iterator[str]:
        found = self.achieved
        yield from ("", "## Would it have been as good?", "")
        if found.logged is None or found.bounds is None or found.agreeing is None:
            yield f"It is unknown: {found.refused}."
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


def _usd(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:.4g}"
