"""`routeyard shadow`: what a router would have cost and achieved on a gateway's log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
)
from routeyard.flows.traffic.shadow_page import ShadowReport
from routeyard.pipelines.arrays import Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.trajectories.arrays import Trajectories, trajectories_of
from routeyard.pipelines.trajectories.audit import audit_steps
from routeyard.pipelines.trajectories.daily import (
    DAY,
    DaySaving,
    Savings,
    began_between,
    break_even,
    savings,
)
from routeyard.pipelines.trajectories.outcome import assumptions
from routeyard.pipelines.trajectories.policies import policy_arms
from routeyard.pipelines.trajectories.recorded import cache_check, usage_cost


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
    found = achieved(
        steps, arm, names, propensities_of(recorded.steps, steps), propensities=propensities,
        # The past chose the router: it does not judge it.
        among=began_between(steps, start, np.inf), **draws,
    )  # fmt: skip
    saving = savings(steps, arm, periods, names, between=(start, np.inf), **draws)
    return ShadowReport(
        router=Path(chosen).name if chosen in saved else chosen,
        steps=len(steps),
        trajectories=int(steps.trajectory[-1]) + 1,
        tasks=len(steps.tasks),
        shares=_shares(steps, arm, names),
        usage=usage_cost(steps, periods),
        savings=saving,
        break_even=break_even(steps, arm, periods, names, between=(start, np.inf)),
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
    first = np.diff(steps.trajectory, prepend=-1) != 0
    began = np.floor(steps.time[first] / DAY)[steps.trajectory]
    later = np.unique(steps.trajectory[np.floor(steps.time / DAY) > began])
    if len(later):
        said.append(
            f"The day of each cost: {len(later):,} trajectories go on after the day on which they "
            "began, and count on that day."
        )
    if lacking := int(np.isnan(steps.cost).sum()):
        said.append(f"What {lacking:,} of {len(steps):,} calls were billed: the log does not say.")
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
