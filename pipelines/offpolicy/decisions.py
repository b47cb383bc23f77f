"""Logged decisions: what was chosen, with which probability, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.errors import BadInput

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
