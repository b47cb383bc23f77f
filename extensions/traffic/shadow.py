"""`routeyard shadow`: what a router would have cost and achieved on a gateway's log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from routeyard.extensions.traffic.off_policy import (
    CannotTell,
    Decisions,
    OffPolicyReport,
    estimate_policy,
    expected_rewards,
)
from routeyard.extensions.traffic.outcome import (
    DAY,
    CacheCheck,
    DaySaving,
    Savings,
    UsageCost,
    assumptions,
    began_between,
    cache_check,
    savings,
    usage_cost,
)
from routeyard.extensions.traffic.reading import (
    RecordedSteps,
    arm_prices,
    arms_in,
    day_second,
    page,
    priced_from,
    read_steps,
)
from routeyard.extensions.traffic.replay import (
    StepFinding,
    Trajectories,
    audit_steps,
    policy_arms,
    trajectories_of,
)
from routeyard.pipelines.common.arrays import Bools, Floats, Ints
from routeyard.pipelines.common.trajectories import ArmPrice
from routeyard.schemas.errors import BadInput

# What a router would have achieved on a log: estimated, bounded, or unknown.


@dataclass(frozen=True)
class Achieved:
    """What the log says of the router's outcomes.

    Attributes:
        with_outcome: Trajectories that have one, of `trajectories`.
        logged: Their mean outcome under the arms that were chosen.
        agreeing: Share of them in which the router makes all the choices that were made.
        bounds: Lowest and highest mean outcome of the router: where it chooses otherwise the
            outcome may be anything from 0 to 1.
        estimate: Estimates from propensities, where the log can tell.
        refused: Why it cannot.
    """

    trajectories: int
    with_outcome: int
    logged: float | None
    agreeing: float | None
    bounds: tuple[float, float] | None
    estimate: OffPolicyReport | None
    refused: str | None


def achieved(
    steps: Trajectories,
    arm: Ints,
    names: tuple[str, ...],
    propensity: Floats,
    *,
    propensities: Literal["test", "context"] = "test",
    among: Bools | None = None,
    resamples: int = 2_000,
    seed: int = 0,
) -> Achieved:
    """What the router would have achieved, as far as outcomes were recorded.

    Args:
        arm: (n,) number in `names` of the arm that the router gives each step.
        propensity: (n,) logged probability of the arm of each step; NaN unknown.
        among: (trajectories,) which of them count; by default all.
    """
    first, chosen = steps.first, steps.answered(names)
    same = np.minimum.reduceat((chosen == arm).astype(int), first).astype(bool)
    if among is not None:
        first, same = first[among], same[among]
    outcome = steps.outcome[first]
    known = ~np.isnan(outcome)
    if not known.any():
        return Achieved(
            len(first), 0, None, None, None, None, "no trajectory has an outcome: grade or judge "
            "a sample of the answers, and log the result",
        )  # fmt: skip
    agreed = float(outcome[known & same].sum() / known.sum())
    apart = float((known & ~same).sum() / known.sum())
    refused, estimate = None, None
    try:
        decisions = _decisions(steps, arm, chosen, names, propensity, first)
        estimate = estimate_policy(
            decisions, propensities=propensities, resamples=resamples, seed=seed
        )
    except CannotTell as cannot:
        refused = "; ".join(filter(None, (cannot.what, cannot.next_step)))
    return Achieved(
        len(first), int(known.sum()), float(outcome[known].mean()),
        float((known & same).sum() / known.sum()), (agreed, agreed + apart), estimate, refused,
    )  # fmt: skip


def _decisions(
    steps: Trajectories, arm: Ints, chosen: Ints, names: tuple[str, ...], propensity: Floats,
    first: Ints,
) -> Decisions:  # fmt: skip
    """One decision for each trajectory.

    Raises:
        CannotTell: a trajectory holds several decisions, whose outcome is of all of them.
    """
    anew = ~steps.is_first
    decided = anew & (~np.isnan(propensity) & (propensity < 1))
    switched = anew & (np.concatenate([[0], np.diff(arm)]) != 0)
    if decided.any() or switched.any():
        raise CannotTell(
            f"{int(decided.sum()):,} later steps were decided anew in the log and "
            f"{int(switched.sum()):,} by the router, while a trajectory has one outcome: the "
            "propensities of its decisions depend on what happened before",
            next_step="estimate policies that choose once for each trajectory",
        )
    logged = propensity[first]
    lacking = None if np.isnan(logged).all() else logged
    outcome = steps.outcome[first]
    features = np.log1p(np.nan_to_num(steps.prompt[first]))[:, None]
    return Decisions(
        task=steps.task[first],
        arm=chosen[first],
        reward=outcome,
        propensity=lacking,
        target=np.eye(len(names))[arm[first]],
        expected=expected_rewards(features, chosen[first], outcome, steps.task[first], len(names)),
        time=None if np.isnan(steps.time[first]).any() else steps.time[first],
    )


def propensities_of(table: pa.Table, steps: Trajectories) -> Floats:
    """(n,) logged propensities in the order of the steps; NaN unknown."""
    if "propensity" not in table.column_names:
        raise BadInput("these steps have no column `propensity`")
    column = table.column("propensity").cast(pa.float64()).to_numpy()
    return np.asarray(column, dtype=np.float64)[steps.order]


# The page of `routeyard shadow`.


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

    def lines(self) -> Iterator[str]:
        """The page, in Markdown."""
        return page("shadow", self)


def shadow(
    logs: Path,
    routers: Sequence[str],
    *,
    pools: Sequence[Path] = (),
    caches: Sequence[str] = (),
    named: str | None = None,
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
    saved = [router for router in routers if Path(router).is_dir()]
    recorded = read_steps(logs, named=named, prompts=bool(saved))
    steps = trajectories_of(recorded.steps)
    arms = arms_in([router for router in routers if router not in saved], steps.arms)
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
    choices = {
        router: _by_router(Path(router), recorded, steps, names, encoder)
        if router in saved
        else policy_arms(router, steps, names, recorded.steps)
        for router in routers
    }
    start = _judged_from(after, routers, steps)
    draws: dict[str, Any] = {"resamples": resamples, "seed": seed}
    chosen, past = _chosen(steps, choices, periods, names, start, draws)
    arm, last = choices[chosen], periods[-1][1]
    result = achieved(
        steps, arm, names, propensities_of(recorded.steps, steps), propensities=propensities,
        # The past chose the router: it does not judge it.
        among=began_between(steps, start, np.inf), **draws,
    )  # fmt: skip
    saving = savings(steps, arm, periods, names, window=(start, np.inf), **draws)
    return ShadowReport(
        router=Path(chosen).name if chosen in saved else chosen,
        steps=len(steps),
        trajectories=int(steps.trajectory[-1]) + 1,
        tasks=len(steps.tasks),
        shares=_shares(steps, arm, names),
        usage=usage_cost(steps, periods),
        savings=saving,
        achieved=result,
        check=cache_check(steps, last),
        findings=audit_steps(recorded.steps),
        cannot=_cannot(recorded, steps, arm, names, last, result, saving),
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
    for side, end in ((-np.inf, start), (start, np.inf)):
        if not began_between(steps, side, end).any():
            raise BadInput(
                f"no trajectory begins {'before' if end == start else 'on or after'} {after}",
                where="--after",
                next_step="choose a day within the log",
            )
    return start


def _chosen(
    steps: Trajectories, choices: Mapping[str, Ints], periods: Any, names: tuple[str, ...],
    start: float, draws: Mapping[str, Any],
) -> tuple[str, dict[str, DaySaving]]:  # fmt: skip
    """The router that surely saved most before `start`, and what each saved then.

    Only costs choose: what another arm would have achieved is rarely known.
    """
    if start == -np.inf:
        return next(iter(choices)), {}
    past = {
        item: savings(steps, arm, periods, names, window=(-np.inf, start), **draws).total
        for item, arm in choices.items()
    }
    least = {item: np.nan_to_num(day.saved[1], nan=-np.inf) if day.saved else -np.inf
             for item, day in past.items()}  # fmt: skip
    return max(choices, key=lambda item: (least[item], item)), past


def _by_router(
    place: Path, recorded: RecordedSteps, steps: Trajectories, names: tuple[str, ...],
    encoder: str | None,
) -> Ints:  # fmt: skip
    """(n,) arm that a saved router chooses once for each trajectory, by what was asked first."""
    from routeyard.flows.evaluation.route import choices_of
    from routeyard.pipelines.common.encoders import NAME as TFIDF

    first = steps.first
    asked = [recorded.prompts[k] for k in steps.order[first]] if recorded.prompts else []
    lacking = len(first) - sum(bool(item) for item in asked)
    if lacking:
        raise BadInput(
            f"{lacking:,} of {len(first):,} trajectories do not say what was asked, which the "
            "router reads",
            where=str(place),
            next_step="log the messages, or give the router's choices as a file with query_id, "
            "model_id, sample, step and arm",
        )
    chosen = choices_of(place, [str(item) for item in asked], encoder=encoder or TFIDF)
    unpriced = sorted(set(chosen) - set(names))
    if unpriced:
        raise BadInput(f"no price is known of {unpriced[0]!r}, which the router chooses")
    return np.array([names.index(item) for item in chosen])[steps.trajectory]


def _shares(
    steps: Trajectories, arm: Ints, names: tuple[str, ...]
) -> dict[str, tuple[float, float]]:
    logged = steps.answered(names)
    counts = [np.bincount(item, minlength=len(names)) / len(steps) for item in (logged, arm)]
    return {
        name: (float(counts[0][k]), float(counts[1][k]))
        for k, name in enumerate(names)
        if counts[0][k] or counts[1][k]
    }


def _cannot(
    recorded: RecordedSteps, steps: Trajectories, arm: Ints, names: tuple[str, ...],
    prices: Mapping[str, ArmPrice], outcome: Achieved, saving: Savings,
) -> list[str]:  # fmt: skip
    """What the log cannot tell of this router, and why."""
    said = list(recorded.doubts)
    logged = steps.answered(names)
    if other := int((logged != arm).sum()):
        said.append(
            f"In {other:,} of {len(steps):,} calls the router chooses an arm that did not answer: "
            "how long its answer would have been is the mean of its others, and whether the "
            "trajectory would have gone the same way is not known."
        )
    if outcome.refused:
        said.append(f"Outcomes under the router: {outcome.refused}.")
    began = np.floor(steps.time[steps.first] / DAY)[steps.trajectory]
    later = np.unique(steps.trajectory[np.floor(steps.time / DAY) > began])
    if len(later):
        said.append(
            f"The day of each cost: {len(later):,} trajectories go on after the day on which they "
            "began, and count on that day."
        )
    if lacking := int(np.isnan(steps.cost).sum()):
        said.append(f"What {lacking:,} of {len(steps):,} calls were billed: the log does not say.")
    used = {names[k] for k in np.unique([logged, arm]) if k >= 0}
    if unpriced := sorted(used - prices.keys()):
        said.append(
            f"What calls of {', '.join(unpriced)} cost: no price is stated; name a file with "
            "theirs, --pool pool.yaml."
        )
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
