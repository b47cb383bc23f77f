"""Context of a number that makes it part of something else.

`6*sqrt(2)` is not 6, `4i` not 4, `2 + sqrt(3)` not 2, `x > 5` not 5: a reader of
numbers must refuse an answer whose number is only a piece.
"""

from __future__ import annotations

from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("number_context")


def part_of_more(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]`, a number, is a factor, a summand or a bound of something.

    `text` is already `plain`.
    """
    left = text[max(0, start - 60) : start]
    if _RE["right"].match(text, end, end + 32) or (
        len(text) - end <= 6 and _RE["i"].match(text, end)
    ):
        return True
    return bool(_RE["left"].search(left)) and not _RE["tag"].search(left)
