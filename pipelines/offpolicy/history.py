"""Whether propensities follow the outcomes seen before, as those of a bandit do."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats
from routeyard.pipelines.offpolicy.decisions import CannotTell, Decisions

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
    found = []
    for arm in np.unique(decisions.arm):
        own = order[decisions.arm[order] == arm]
        own = own[~np.isnan(decisions.reward[own])]
        propensity = decisions.propensity[own]
        before = _means_before(decisions.reward[own])
        later = np.arange(len(own)) >= WARM_UP
        if later.sum() >= FEWEST_LATER and _varies(propensity, later) and _varies(before, later):
            p = float(kendalltau(propensity[later], before[later]).pvalue)
            found.append((p, int(arm)))
    if not found:
        return 1.0, -1
    least, arm = min(found)
    return min(1.0, least * len(found)), arm


def _means_before(rewards: Floats) -> Floats:
    """Mean of the values before each one; NaN for the first."""
    before = np.concatenate([[np.nan], np.cumsum(rewards)[:-1]])
    return before / np.maximum(np.arange(len(rewards)), 1)


def _varies(values: Floats, where: Bools) -> bool:
    return bool(np.ptp(values[where]) > 1e-12)
