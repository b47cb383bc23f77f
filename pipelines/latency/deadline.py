"""A selection rule that keeps a deadline: the best score whose late answers stay within a share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class DeadlineRule:
    """argmax over arms of score − weight · chance to be late.

    Attributes:
        late: (arms,) share of each arm's calls above the limit, of those it was learned from.
        weight: What a chance of 1 to be late costs in score.
        attainable: False where even the arm that is late least often breaks the promise.
    """

    limit_s: float
    share: float
    late: Floats
    weight: float
    attainable: bool

    def choose(self, scores: Floats) -> Ints:
        """(n,) arm for each question of `scores` (n, arms); ties go to the arm that is late less.

        An arm whose latency is unknown is never chosen.
        """
        value = scores - self.weight * np.nan_to_num(self.late, nan=0.0)
        value = np.where(np.isnan(self.late), -np.inf, value)
        order = np.argsort(self.late, kind="stable")
        return np.asarray(order[np.argmax(value[:, order], axis=1)])


def fit_deadline(
    scores: Floats, seconds: Floats, limit_s: float, share: float = 0.95, *, margin: float = 1.645
) -> DeadlineRule:
    """The rule with the smallest weight that keeps the promise on the calls it learns from.

    The expected share of late calls, and `margin` standard errors of it on top, stay below
    1 − share. Per arm, the chance to be late is its share of late calls, whatever the question.

    Args:
        scores: (n, arms) what the router expects of each arm.
        seconds: (n, arms) latency of each arm with the router's decision; NaN unknown.
    """
    late = _means(seconds > limit_s, ~np.isnan(seconds))
    spread = np.sqrt(late * (1 - late) / np.maximum((~np.isnan(seconds)).sum(axis=0), 1))
    allowed = 1 - share

    def excess(weight: float) -> float:
        arm = DeadlineRule(limit_s, share, late, weight, True).choose(scores)
        used = np.bincount(arm, minlength=len(late)) / max(len(arm), 1)
        known = np.nan_to_num(late) @ used
        return float(known + margin * np.sqrt(np.square(np.nan_to_num(spread) * used).sum()))

    weights = np.concatenate([[0.0], np.geomspace(1e-3, 1e4, 141)])
    for weight in weights:
        if excess(float(weight)) <= allowed:
            return DeadlineRule(limit_s, share, late, float(weight), True)
    return DeadlineRule(limit_s, share, late, float(weights[-1]), False)


def _means(what: Bools, where: Bools) -> Floats:
    """(arms,) share of true values where they are known; NaN where none is."""
    count = where.sum(axis=0)
    share = (what & where).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, share, np.nan)


def split_by_time(time: Floats, part: float = 0.5) -> tuple[Bools, Bools]:
    """(train, test) masks: the earlier hours with about `part` of the calls, and the later ones.

    An hour is never on both sides, so that one slow hour does not tell of itself. Calls without a
    time are on neither side.
    """
    known = ~np.isnan(time)
    hours = np.floor(time / 3600)
    listed, counts = np.unique(hours[known], return_counts=True)
    upto = np.cumsum(counts)
    cut = listed[np.argmin(np.abs(upto - part * upto[-1]))] if len(listed) else np.nan
    return known & (hours <= cut), known & (hours > cut)
