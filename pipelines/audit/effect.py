"""What mending a finding does to the leaderboard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.audit.answers import Answers, Floats, means
from routeyard.pipelines.audit.finding import Found, Mends


@dataclass(frozen=True)
class Effect:
    """The sentence, pairs of arms that change places, and the largest change of an arm."""

    says: str
    swaps: int
    moved: float


def effect(answers: Answers, found: Found, mends: Mends) -> Effect:
    """The leaderboard by accuracy, or by mean cost, with and without what was found."""
    if found.before is not None and found.after is not None:
        return _told(answers.arms, found.before, found.after, "score")
    if mends == "nothing" or not len(found.rows):
        return Effect("the leaderboard stays as it is", 0, 0.0)
    column = "score" if mends == "score" else "cost_usd"
    values, arm = answers.numbers(column), answers.arm
    size = len(answers.arms)
    before = means(arm, values, size)
    if found.swap is not None:
        arm = arm.copy()
        arm[found.rows] = found.swap
        after = means(arm, values, size)
    else:
        left = values.copy()
        left[found.rows] = np.nan
        after = means(arm, left, size)
    return _told(answers.arms, before, after, mends)


def _told(arms: list[str], before: Floats, after: Floats, mends: Mends) -> Effect:
    both = ~np.isnan(before) & ~np.isnan(after)
    gone = [arms[k] for k in np.flatnonzero(~np.isnan(before) & np.isnan(after))]
    swaps = inversions(before[both], after[both])
    change = np.where(both, after - before, 0.0)
    if mends == "cost":
        change = change / np.maximum(np.abs(np.where(both, after, 1.0)), 1e-12)
    parts = []
    if both.any() and np.any(change):
        k = int(np.argmax(np.abs(change)))
        old, new = _rank(before, k, mends), _rank(after, k, mends)
        value = _money if mends == "cost" else _percent
        what = "mean cost" if mends == "cost" else "accuracy"
        parts.append(f"{arms[k]}: {what} {value(before[k])} → {value(after[k])}")
        parts[-1] += f", place {old} → {new} of {int(both.sum())}" if old != new else ""
    if gone:
        shown = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
        what = "known cost" if mends == "cost" else "scored answer"
        parts.append(f"without any {what}: {shown}")
    if swaps:
        parts.append(f"{swaps} pair{'s' if swaps > 1 else ''} of arms change places")
    elif not gone:
        parts.append("no arm changes its place")
    # Arms that lose their place altogether have changed places with all others.
    lost = len(gone) * (int((~np.isnan(before)).sum()) - 1)
    return Effect("; ".join(parts), swaps + lost, float(np.abs(change).max(initial=0.0)))


def inversions(before: Floats, after: Floats) -> int:
    """Pairs whose order differs."""
    a = np.sign(before[:, None] - before[None, :])
    b = np.sign(after[:, None] - after[None, :])
    return int(np.sum(np.triu(a * b < 0)))


def _rank(values: Floats, k: int, mends: Mends) -> int:
    better = values < values[k] if mends == "cost" else values > values[k]
    return int(better.sum()) + 1


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _money(value: float) -> str:
    return f"${value:.3g}"
