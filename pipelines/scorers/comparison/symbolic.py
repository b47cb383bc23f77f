"""Symbolic comparison within a time limit, which is kept by killing the process that compares."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache

from routeyard.pipelines.isolation import LimitExceeded, Limits, ProcessEnded, Worker
from routeyard.pipelines.scorers.comparison import latex_equality

#: Seconds for one comparison.
LIMIT = 5.0
#: Longer expressions are not handed on: parsing alone would take the limit.
LONGEST = 600


class TookTooLong(Exception):
    """A comparison did not end within the limit; the worker has been killed."""


_WORKER = Worker(Limits(memory=2 << 30, wall_s=LIMIT), latex_equality.prepare)


#: Pairs that took too long, and how often each side did: they are not tried again.
_slow_pairs: set[tuple[str, str]] = set()
_slow_sides: Counter[str] = Counter()
#: An expression that was part of so many time-outs is given up for this process: one bad
#: reference would otherwise cost the limit once for every model.
GIVEN_UP = 2
_MOST_REMEMBERED = 65_536


def same(one: str, other: str, limit: float = LIMIT) -> bool | None:
    """Whether two LaTeX texts are equal; None when one cannot be read.

    Raises:
        TookTooLong: the comparison did not end within `limit` seconds, now or
            before, or one side is known for that.
    """
    if len(one) > LONGEST or len(other) > LONGEST:
        return None
    if (one, other) in _slow_pairs or max(_slow_sides[one], _slow_sides[other]) >= GIVEN_UP:
        raise TookTooLong
    try:
        return _same(one, other, limit)
    except TookTooLong:
        if len(_slow_pairs) >= _MOST_REMEMBERED:
            _slow_pairs.clear()
            _slow_sides.clear()
        _slow_pairs.add((one, other))
        _slow_sides.update((one, other))
        raise


@lru_cache(maxsize=65536)
def _same(one: str, other: str, limit: float) -> bool | None:
    try:
        answer = _WORKER.call(
            latex_equality.equal, one, other, limits=replace(_WORKER.limits, wall_s=limit)
        )
    except LimitExceeded as error:
        if error.limit == "time":
            raise TookTooLong from error
        return None
    except ProcessEnded:  # by its stack: this pair cannot be settled
        return None
    return None if answer is None else bool(answer)


def forget() -> None:
    """Forget time-outs, as a new process does."""
    _slow_pairs.clear()
    _slow_sides.clear()
    _same.cache_clear()


def close() -> None:
    """Stop the process; the next comparison starts another."""
    _WORKER.close()
