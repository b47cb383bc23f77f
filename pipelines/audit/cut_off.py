"""Answers cut off at a limit of tokens, and texts cut when they were stored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from routeyard.pipelines.audit.answers import Answers, Codes, Floats, means
from routeyard.pipelines.audit.finding import Found


def limits(answers: Answers) -> Iterator[Found]:
    """Token counts that recur at the top of an arm's range: answers cut off at a limit."""
    for column, what in (("completion_tokens", "completion tokens"),):
        if answers.has(column):
            yield from _limits(answers, answers.numbers(column), what, least=16)


def cut_texts(answers: Answers) -> Iterator[Found]:
    """Lengths of text that recur at the top: texts that were cut when they were stored."""
    length = answers.lengths("text")
    yield from _limits(answers, length, "characters", least=200)


def _limits(answers: Answers, values: Floats, what: str, *, least: int) -> Iterator[Found]:
    told: dict[float, list[int]] = {}
    rows_of: dict[int, Codes] = {}
    for k in range(len(answers.arms)):
        rows = np.flatnonzero((answers.arm == k) & ~np.isnan(values))
        limit = _limit(values[rows], least)
        if limit is not None:
            rows_of[k] = rows[values[rows] == limit]
            told.setdefault(limit, []).append(k)
    for limit, arms in sorted(told.items()):
        for k in arms:
            rows = rows_of[k]
            total = int(np.sum((answers.arm == k) & ~np.isnan(values)))
            right = means(np.zeros(len(rows), np.int64), answers.score[rows], 1)[0]
            known = "" if np.isnan(right) else f"; {100 * right:.0f} % of them are right"
            says = (
                f"{len(rows):,} of {total:,} answers have exactly {limit:,.0f} {what}: they were "
                f"cut off at a limit{known}"
            )
            yield Found(answers.arms[k], says, rows)


#: Limits below 64 tokens that harnesses set.
_SMALL = (16, 32)


def _round(value: float) -> bool:
    """Whether a person would set it as a limit: a power of two times at most 7, or hundreds."""
    odd = int(value)
    while odd and odd % 2 == 0:
        odd //= 2
    return (odd <= 7 and value >= 64) or value % 100 == 0 or value in _SMALL


def _limit(values: Floats, least: int) -> float | None:
    """The value at which counts pile up with next to nothing above it; None where none does.

    A pile is five counts at least, more than all the counts within a tenth below it would put on
    any one value, five times over.
    """
    if len(values) < 20:
        return None
    unique, number = np.unique(values, return_counts=True)
    if len(unique) < 8:
        return None
    top = unique >= least
    for k in np.flatnonzero(top & (number >= max(5, 0.004 * len(values))))[::-1]:
        value = unique[k]
        below = (values >= 0.85 * value) & (values < value)
        density = below.sum() / max(0.15 * value, 1.0)
        near = number[(unique >= 0.85 * value) & (unique < value)]
        above = int((values > value).sum())
        many = number[k] >= max(10, 0.025 * len(values)) and number[k] > 8 * near.max(initial=0)
        limit = value >= 64 or value in _SMALL or many
        pile = limit and number[k] >= 5 * max(density, 1.0) and number[k] > 3 * near.max(initial=0)
        if pile and above <= (0.02 * len(values) if _round(value) else 0):
            return float(value)
    return None


#: Seconds from which a limit is one, share of an arm's answers that have to reach it, and share of
#: them that may be right.
_SECONDS, _REACH, _RIGHT = 5.0, 0.01, 0.1


def timeouts(answers: Answers) -> Iterator[Found]:
    """Latencies that recur at the top of an arm's range and are nearly all wrong: time-outs."""
    latency = answers.numbers("latency_s")
    for a, name in enumerate(answers.arms):
        rows = np.flatnonzero((answers.arm == a) & ~np.isnan(latency) & ~np.isnan(answers.score))
        if len(rows) < 20 or not (top := float(latency[rows].max())) >= _SECONDS:
            continue
        # A call that is stopped ends within a hundredth of the limit.
        at = rows[latency[rows] >= 0.98 * top]
        below = np.sum((latency[rows] >= 0.9 * top) & (latency[rows] < 0.98 * top))
        piled = len(at) >= max(5, _REACH * len(rows)) and len(at) > 5 * below
        right = float(np.mean(answers.score[at] > 0))
        if piled and right <= _RIGHT and right < 0.5 * float(np.mean(answers.score[rows] > 0)):
            says = (
                f"{len(at):,} of {len(rows):,} answers took {0.98 * top:.3g} to {top:.3g} s, the "
                f"longest that any took, and {100 * right:.0f} % of them are right: time-outs that "
                "count as wrong"
            )
            yield Found(name, says, at)
