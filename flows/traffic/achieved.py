"""What a router would have achieved on a log: estimated, bounded, or unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Bools, Floats, Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.offpolicy.decisions import CannotTell, Decisions
from routeyard.pipelines.offpolicy.estimate import OffPolicyReport, estimate_policy
from routeyard.pipelines.offpolicy.reward_model import expected_rewards
from routeyard.pipelines.trajectories.arrays import Trajectories


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
    first = np.flatnonzero(np.diff(steps.trajectory, prepend=-1))
    chosen = np.array([names.index(name) for name in steps.arms])[steps.arm]
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
    anew = np.diff(steps.trajectory, prepend=-1) == 0
    decided = anew & (~np.isnan(propensity) & (propensity < 1))
    switched = anew & (np.concatenate([[0], np.diff(arm)]) != 0)
    if decided.any() or switched.any():
        raise CannotTell(
            f"{int(decided.sum()):,} later steps were decided anew in the log and "
            f"{int(switched.sum()):,} by the router, while a trajectory has one outcome: the "
            "propensities of its decisions depend on what happened before",
            next_step="estimate policies that choose once for each trajectory",
        )
    given = propensity[first]
    lacking = None if np.isnan(given).all() else given
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
