"""IPS, SNIPS and doubly robust estimates with intervals by task, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from routeyard.pipelines.arrays import Floats, ratio
from routeyard.pipelines.metrics.bootstrap import Draws, interval
from routeyard.pipelines.offpolicy.decisions import CannotTell, Decisions
from routeyard.pipelines.offpolicy.history import check_history

#: What is summed over decisions: weight × outcome, weight, doubly robust term, one.
COLUMNS = ("weighted", "weight", "doubly_robust", "one")
#: Interval of the mean weight that must hold 1: 99.9 %.
SUPPORT_LEVEL = 0.999
#: Below this effective sample size intervals are too narrow: with a least propensity of 0.01 and
#: 2,000 decisions (effective size 61) they cover 87 to 92 % (`python -m benchmarks off_policy`).
FEWEST_EFFECTIVE = 100


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """One estimate of a policy's mean outcome, with its 95 % interval."""

    estimator: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class OffPolicyReport:
    """What a log says of a policy that was not run.

    Attributes:
        values: One estimate for each estimator.
        logged: Mean outcome of what was chosen, with its interval.
        effective: Effective sample size (Σw)² / Σw² of the decisions with an outcome.
        least_propensity: Smallest probability with which a choice was made.
        mean_weight: Mean of the weights; 1 where the log holds every decision the policy makes.
        unknown: Decisions without outcome; the values are of the others.
        clip_bias: Largest amount by which clipping can have lowered IPS, for outcomes in [0, 1].
    """

    values: tuple[PolicyValue, ...]
    logged: PolicyValue
    decisions: int
    tasks: int
    effective: float
    least_propensity: float
    mean_weight: float
    unknown: int
    clip: float | None = None
    clip_bias: float = 0.0
    #: All outcomes that count for the policy are equal: drawing them again shows no spread.
    constant: bool = False

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader of the intervals must know, one sentence each."""
        said = []
        if self.effective < FEWEST_EFFECTIVE:
            said.append(
                f"the effective sample size is {self.effective:,.0f} of {self.decisions:,} "
                "decisions: intervals are too narrow and cover about 90 %, not 95 %"
            )
        if self.unknown:
            said.append(
                f"{self.unknown:,} decisions without outcome are left out: the estimate holds for "
                "the others, and for all only if outcomes are missing at random"
            )
        if self.constant:
            said.append(
                "all outcomes of the policy's own choices are equal: their intervals are too narrow"
            )
        if self.clip is not None:
            said.append(
                f"weights are clipped at {self.clip:g}: IPS may be too low by up to "
                f"{self.clip_bias:.4f}"
            )
        return tuple(said)


def estimate_policy(
    decisions: Decisions,
    *,
    propensities: Literal["test", "context"] = "test",
    clip: float | None = None,
    resamples: int = 2_000,
    seed: int = 0,
) -> OffPolicyReport:
    """What the target policy would have achieved, by each estimator.

    IPS: Horvitz and Thompson (1952), mean of w·r. SNIPS: Swaminathan and Joachims (2015), their
    sum over Σw. DR: Dudík, Langford and Li (2011), mean of
    Σ_a π(a|x)·q(x, a) + w·(r − q(x, a_logged)).
    Intervals are percentiles of a bootstrap of tasks.

    Args:
        propensities: `context` states that they depend on the context alone; `test` looks
            whether they follow earlier outcomes.
        clip: Largest weight; the possible bias is reported.

    Raises:
        CannotTell: no propensities, propensities that depend on history, or decisions that the
            policy makes and the log does not hold.
    """
    decisions.check()
    if propensities == "test":
        check_history(decisions)
    known = _with_outcome(decisions)
    weights = known.weights
    used = weights if clip is None else np.minimum(weights, clip)
    draws = Draws(len(known), resamples, seed, groups=known.task)
    _check_support(weights, draws)
    sums = columns(used, known)
    totals = sums.sum(axis=0)
    replicates = draws.sums(sums)
    names = ["ips", "snips", *(["dr"] if known.expected is not None else [])]
    values = tuple(
        PolicyValue(name, float(statistic(totals[None], name)[0]),
                    *interval(statistic(replicates, name)))
        for name in names
    )  # fmt: skip
    means = draws.means(known.reward[:, None])[:, 0]
    assert decisions.propensity is not None
    return OffPolicyReport(
        values,
        PolicyValue("logged", float(known.reward.mean()), *interval(means)),
        len(known),
        len(np.unique(known.task)),
        float(used.sum() ** 2 / np.square(used).sum()) if used.any() else 0.0,
        float(decisions.propensity.min()),
        float(weights.mean()),
        len(decisions) - len(known),
        clip,
        float((weights - used).mean()),
        bool(np.ptp(known.reward[used > 0]) == 0),
    )


def columns(weights: Floats, decisions: Decisions) -> Floats:
    """(n, 4) what is summed over the decisions of a resample, in the order of `COLUMNS`."""
    n, reward = len(decisions), decisions.reward
    robust = np.full(n, np.nan)
    if decisions.expected is not None:
        logged = decisions.expected[np.arange(n), decisions.arm]
        robust = (decisions.target * decisions.expected).sum(axis=1) + weights * (reward - logged)
    return np.stack([weights * reward, weights, robust, np.ones(n)], axis=1)


def statistic(sums: Floats, estimator: str) -> Floats:
    """An estimator of sums in the order of `COLUMNS` along the last axis."""
    weighted, weight, robust, one = np.moveaxis(sums, -1, 0)
    return {
        "ips": ratio(weighted, one),
        "snips": ratio(weighted, weight),
        "dr": ratio(robust, one),
    }[estimator]


def _with_outcome(decisions: Decisions) -> Decisions:
    known = ~np.isnan(decisions.reward)
    if known.all():
        return decisions
    assert decisions.propensity is not None
    return replace(
        decisions,
        task=decisions.task[known],
        arm=decisions.arm[known],
        reward=decisions.reward[known],
        propensity=decisions.propensity[known],
        target=decisions.target[known],
        expected=None if decisions.expected is None else decisions.expected[known],
        time=None if decisions.time is None else decisions.time[known],
    )


def _check_support(weights: Floats, draws: Draws) -> None:
    """With overlap and true propensities the mean of the weights is 1."""
    low, high = interval(draws.means(weights[:, None])[:, 0], SUPPORT_LEVEL)
    if not weights.any() or not low <= 1 <= high:
        raise CannotTell(
            f"the weights average {weights.mean():.3f} ({low:.3f} to {high:.3f}), not 1: the "
            "policy makes decisions that the log never made, or the propensities are not those "
            "that were used",
            next_step="estimate a policy that chooses among the arms that were tried in each "
            "context, or correct the propensities",
        )
