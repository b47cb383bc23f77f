"""Value of a policy that was not run, from logged decisions with propensities."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from routeyard.pipelines.common.arrays import Bools, Floats, Ints, ratio
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval
from routeyard.schemas.errors import BadInput

# Logged decisions: what was chosen, with which probability, and what came of it.

#: Below this many decisions no interval is worth its name.
FEWEST = 50


class CannotTell(BadInput):
    """The log cannot say what another policy would have achieved."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """n decisions of a logging policy, and what a target policy would do in each.

    Attributes:
        task: (n,) number of the task that the decision belongs to; tasks are resampled, not
            decisions.
        arm: (n,) number of the arm that was chosen.
        reward: (n,) outcome; NaN where none was recorded.
        propensity: (n,) probability with which the logging policy chose `arm` in this context.
        target: (n, arms) probability with which the target policy chooses each arm.
        expected: (n, arms) expected reward of each arm by a model that did not learn from the
            decision's own task; None leaves the doubly robust estimate out.
        time: (n,) seconds or any number that orders the decisions; None when unknown.
    """

    task: Ints
    arm: Ints
    reward: Floats
    propensity: Floats | None
    target: Floats
    expected: Floats | None = None
    time: Floats | None = None

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def weights(self) -> Floats:
        """(n,) probability under the target policy over that under the logging policy."""
        assert self.propensity is not None
        return np.asarray(self.target[np.arange(len(self)), self.arm] / self.propensity)

    def check(self) -> None:
        """Nothing, where an estimate is possible.

        Raises:
            CannotTell: there are no propensities, no probability at all was left to other arms,
                or too few decisions have an outcome.
            BadInput: numbers that are no probabilities.
        """
        if not len(self):
            raise CannotTell("the log holds no decision")
        if self.propensity is None or np.isnan(self.propensity).any():
            lacking = len(self) if self.propensity is None else np.isnan(self.propensity).sum()
            raise CannotTell(
                f"{lacking:,} of {len(self):,} decisions have no propensity: outcomes of the arms "
                "that were chosen say nothing about the arms that were not",
                next_step="log the probability with which each arm was chosen (a share of the "
                "traffic that is routed at random is enough), or collect the other arms' answers",
            )
        low, high = float(self.propensity.min()), float(self.propensity.max())
        if low <= 0 or high > 1:
            raise BadInput(
                f"propensities must lie in (0, 1]; found {low:g} to {high:g}",
                next_step="a decision that was made has a probability above 0; percentages? divide "
                "by 100",
            )
        if (self.target < -1e-9).any() or np.abs(self.target.sum(axis=1) - 1).max(initial=0) > 1e-6:
            raise BadInput("probabilities of the target policy must sum to 1 in each decision")
        if low == 1:
            raise CannotTell(
                "every decision was made with probability 1: the log holds no choice that could "
                "have gone otherwise",
                next_step="route a share of the traffic at random and log its probability",
            )
        known = int((~np.isnan(self.reward)).sum())
        if known < FEWEST:
            raise CannotTell(
                f"{known:,} of {len(self):,} decisions have an outcome; at least {FEWEST} are "
                "needed",
                next_step="grade or judge more of the answers",
            )


# Whether propensities follow the outcomes seen before, as those of a bandit do.

#: Outcomes of an arm before its running mean counts, and decisions that a test needs.
WARM_UP, FEWEST_LATER = 30, 100
#: An honest log is refused less often than this, over all its arms.
LEVEL = 0.001


def check_history(decisions: Decisions) -> None:
    """Nothing, where propensities do not follow earlier outcomes.

    Kendall's rank correlation, per arm, of the propensity of each choice with the mean outcome of
    that arm until then; the level is divided by the number of arms. Propensities that depend on
    the context alone are not correlated with it, unless both drift with time: then, too, an
    interval that treats tasks as exchangeable would be wrong.

    Raises:
        CannotTell: they do.
    """
    p, arm = probability_of_no_history(decisions)
    if p < LEVEL:
        raise CannotTell(
            f"propensities depend on history: those of arm {arm} follow the outcomes it had before "
            f"(p = {p:.1g}), as a bandit's do; intervals by task would be wrong",
            next_step="use decisions of a policy that did not learn while it ran, or state that "
            "they do not depend on outcomes, if the change was made by hand",
        )


def probability_of_no_history(decisions: Decisions) -> tuple[float, int]:
    """(p-value over all arms, arm with the smallest one); (1, -1) where no arm can be tested."""
    from scipy.stats import kendalltau

    if decisions.time is None or decisions.propensity is None:
        return 1.0, -1
    order = np.argsort(decisions.time, kind="stable")
    probability = []
    for arm in np.unique(decisions.arm):
        own = order[decisions.arm[order] == arm]
        own = own[~np.isnan(decisions.reward[own])]
        propensity = decisions.propensity[own]
        before = _means_before(decisions.reward[own])
        later = np.arange(len(own)) >= WARM_UP
        if later.sum() >= FEWEST_LATER and _varies(propensity, later) and _varies(before, later):
            p = float(kendalltau(propensity[later], before[later]).pvalue)
            probability.append((p, int(arm)))
    if not probability:
        return 1.0, -1
    least, arm = min(probability)
    return min(1.0, least * len(probability)), arm


def _means_before(rewards: Floats) -> Floats:
    """Mean of the values before each one; NaN for the first."""
    before = np.concatenate([[np.nan], np.cumsum(rewards)[:-1]])
    return before / np.maximum(np.arange(len(rewards)), 1)


def _varies(values: Floats, where: Bools) -> bool:
    return bool(np.ptp(values[where]) > 1e-12)


# IPS, SNIPS and doubly robust estimates with intervals by task, and what limits them.

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
    """

    values: tuple[PolicyValue, ...]
    logged: PolicyValue
    decisions: int
    tasks: int
    effective: float
    least_propensity: float
    mean_weight: float
    unknown: int
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
        return tuple(said)


def estimate_policy(
    decisions: Decisions,
    *,
    propensities: Literal["test", "context"] = "test",
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

    Raises:
        CannotTell: no propensities, propensities that depend on history, or decisions that the
            policy makes and the log does not hold.
    """
    decisions.check()
    if propensities == "test":
        check_history(decisions)
    known = _with_outcome(decisions)
    weights = known.weights
    draws = Draws(len(known), resamples, seed, groups=known.task)
    _check_support(weights, draws)
    sums = columns(weights, known)
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
        float(weights.sum() ** 2 / np.square(weights).sum()) if weights.any() else 0.0,
        float(decisions.propensity.min()),
        float(weights.mean()),
        len(decisions) - len(known),
        bool(np.ptp(known.reward[weights > 0]) == 0),
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
    weighted, weight, robust, item = np.moveaxis(sums, -1, 0)
    return {
        "ips": ratio(weighted, item),
        "snips": ratio(weighted, weight),
        "dr": ratio(robust, item),
    }[estimator]


def _with_outcome(decisions: Decisions) -> Decisions:
    known = ~np.isnan(decisions.reward)
    held: dict[str, Any] = {
        field.name: value[known]
        for field in fields(decisions)
        if (value := getattr(decisions, field.name)) is not None
    }
    return replace(decisions, **held)


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


# Expected outcome of each arm, for the doubly robust estimate.

#: Parts of the tasks, each of which is predicted by a fit on the others.
_FOLDS = 5


def expected_rewards(
    features: Floats,
    arm: Ints,
    reward: Floats,
    task: Ints,
    arms: int,
    *,
    ridge: float = 1.0,
) -> Floats:
    """(n, arms) predictions of a ridge regression per arm, cross-fitted over tasks.

    A decision is predicted by a fit that saw none of its task, so that the doubly robust estimate
    stays unbiased (cross-fitting, as in double machine learning). An arm without outcomes in a fit
    gets the mean of all.

    Args:
        features: (n, d); a column of ones is added.
        reward: (n,); NaN is not learned from.
    """
    codes = np.unique(task, return_inverse=True)[1]
    fold = np.random.default_rng(0).integers(0, _FOLDS, codes.max(initial=-1) + 1)[codes]
    inputs = np.column_stack([np.ones(len(arm)), features])
    penalty = ridge * np.eye(inputs.shape[1])
    penalty[0, 0] = 0
    values = np.empty((len(arm), arms))
    known = ~np.isnan(reward)
    for item in range(_FOLDS):
        held, learned = fold == item, (fold != item) & known
        mean = float(reward[learned].mean()) if learned.any() else 0.0
        for number in range(arms):
            own = learned & (arm == number)
            if not own.any():
                values[held, number] = mean
                continue
            x = inputs[own]
            weights = np.linalg.lstsq(x.T @ x + penalty, x.T @ reward[own], rcond=None)[0]
            values[held, number] = inputs[held] @ weights
    return values
