"""Symbolic comparison within limits of time, memory and size (`latex_equality`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from routeyard.pipelines.common.isolation import Limits, ProcessEnded, Worker
from routeyard.pipelines.label.scorers import latex_equality

#: CPU-seconds of one comparison.
LIMIT = 1.0
#: Longer expressions are not handed on: parsing alone would take the limit.
LONGEST = 600
_MOST_REMEMBERED = 65_536


class TookTooLong(Exception):
    """A comparison exceeded a limit of time, memory or size: by what it compares."""


# A comparison that is waited for so long had no processor: that is no answer's doing.
_WORKER = Worker(Limits(memory=1 << 30, wall_s=120.0), latex_equality.prepare)

#: Texts → what was found, and the CPU-seconds of finding it, which whoever asks again pays, too:
#: otherwise a verdict would depend on what was compared before.
_known: dict[tuple[str, ...], tuple[bool | None, bool, float]] = {}
_left: ContextVar[float | None] = ContextVar("left", default=None)


@contextmanager
def allowance(seconds: float = LIMIT) -> Iterator[None]:
    """All that is compared within takes at most so many CPU-seconds together."""
    token = _left.set(seconds)
    try:
        yield
    finally:
        _left.reset(token)


def same(*texts: str) -> bool | None:
    """Whether two LaTeX texts are equal, or one can be evaluated; None: it cannot be read.

    Raises:
        TookTooLong: an expression is too long or too large, or the allowance is used up.
    """
    allowed = _left.get()
    left = LIMIT if allowed is None else min(allowed, LIMIT)
    if max(map(len, texts)) > LONGEST or left <= 0:
        raise TookTooLong
    equal, limited, took = _known.get(texts) or _settled(texts, left)
    if allowed is not None:
        _left.set(allowed - took)
    if limited or took > left:
        raise TookTooLong
    return equal


def _settled(texts: tuple[str, ...], left: float) -> tuple[bool | None, bool, float]:
    try:
        result = _WORKER.call(latex_equality.settled, left, *texts)
    except ProcessEnded:  # from outside: what is compared cannot end it
        result = _WORKER.call(latex_equality.settled, left, *texts)
    equal, limited, took = result
    if not limited or took < left or left == LIMIT:  # else the whole limit may be enough
        if len(_known) >= _MOST_REMEMBERED:
            _known.clear()
        _known[texts] = (equal, limited, took)
    return equal, limited, took


def close() -> None:
    """Stop the process; the next comparison starts another."""
    _WORKER.close()
