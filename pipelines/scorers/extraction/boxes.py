"""Adjacent boxes: one answer in several parts, when the reference has several.

"The solutions are \\boxed{3} and \\boxed{4}." answers a list; "\\boxed{3} …
Correction: … \\boxed{4}" does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from routeyard.pipelines.scorers.extraction.statements import Committed
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("boxes")


#: Characters between two adjacent boxes at most.
NEAR = 90


def adjacent(marks: Sequence[Committed], text: str, index: int) -> list[Committed]:
    """The run of boxes that ends with `marks[index]`, with joining words at most between them."""
    run = [marks[index]]
    for one in reversed(marks[:index]):
        if not _joined(one, run[0], text):
            break
        run.insert(0, one)
    return run


def _joined(one: Committed, other: Committed, text: str) -> bool:
    if one.kind != "boxed" or other.kind != "boxed":
        return False
    between = text[one.end : other.start]
    return len(between) <= NEAR and not _RE["apart"].search(between)
