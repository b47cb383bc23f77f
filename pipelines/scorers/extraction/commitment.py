"""What was answered: of all that an output marks as its answer, the one that counts.

Every scorer asks here. `marks` finds the marks, `TRUST` says how far each kind
is believed, and `settle` applies it; a scorer brings its own reading of a mark's
text, because a mark that it cannot read does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from routeyard.pipelines.scorers.extraction.envelopes import unfinished
from routeyard.pipelines.scorers.extraction.statements import Committed
from routeyard.pipelines.scorers.patterns import patterns, table

_RE = patterns("commitment")
CORRECTS = _RE["corrects"]
CHANGES = _RE["changes"]

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Trust:
    """A kind of mark.

    `firm`: yields only to a later firm mark, a later `Answer:` line, or a later
    answer that says it corrects. `overrides`: counts against an earlier firm one.
    """

    kind: str
    firm: bool
    overrides: bool
    reason: str


#: The order of trust. Within a level the last mark counts: later answers correct earlier ones.
TRUST = tuple(Trust(**row) for row in table("trust"))
_FIRM = frozenset(row.kind for row in TRUST if row.firm)
_OVERRIDES = frozenset(row.kind for row in TRUST if row.overrides)

#: A correction is short; a longer text is another sentence that merely follows.
SHORT = 160


@dataclass(frozen=True, slots=True)
class SettledAnswer:
    """The index of the mark that counts, and whether others contradict it."""

    index: int
    conflict: bool


def settle(
    found: Sequence[tuple[Committed, Value]], text: str, same: Callable[[Value, Value], bool]
) -> SettledAnswer:
    """Which of the readable marks counts (at least one).

    Args:
        found: Marks in the order of the text, each with the scorer's reading.
        same: Whether two readings are one answer.
    """
    if len(found) == 1:
        return SettledAnswer(0, False)
    firm = [i for i, (one, _) in enumerate(found) if one.kind in _FIRM]
    chosen = firm[-1] if firm else len(found) - 1
    for index in range(chosen + 1, len(found)) if firm else ():
        one = found[index][0]
        corrects = len(one.text) <= SHORT and CORRECTS.search(text, found[chosen][0].end, one.start)
        if one.kind in _OVERRIDES or corrects or _concludes(found[chosen][0], one, text):
            chosen = index
    counted = [
        (one, value)
        for index, (one, value) in enumerate(found)
        if index <= chosen or (len(one.text) <= SHORT and _says_answer(one, text))
    ]
    return SettledAnswer(chosen, _contradicts(counted, text, same))


def _concludes(earlier: Committed, one: Committed, text: str) -> bool:
    """Whether a statement ends the output, as the result of working that came after `earlier`.

    Such an answer is short, is drawn in as many words, and follows new equations.
    """
    return (
        one.kind == "stated"
        and len(one.text) <= 40
        and not text[one.end :].strip(" \t\r\n.*`")
        and "=" in text[earlier.end : one.start]
        and bool(_RE["so"].search(text, max(0, one.start - 60), one.start))
    )


def _says_answer(one: Committed, text: str) -> bool:
    return bool(_RE["answer"].search(text, max(0, one.start - 60), one.start))


def _contradicts(
    found: Sequence[tuple[Committed, Value]], text: str, same: Callable[[Value, Value], bool]
) -> bool:
    """Whether differing answers are side by side without a word of correction between."""
    return any(
        not same(one, other) and not CHANGES.search(text, first.start, second.start)
        for (first, one), (second, other) in pairwise(found[-8:])
    )


#: So many characters at the end, repeated, are a loop.
_PERIOD, _TAIL = 30, 1500


def breaks_off(text: str, *, truncated: bool = False) -> bool:
    """Whether an output was cut, runs in circles or calls a tool: it says no more than it marks.

    Args:
        truncated: The response is known to have reached its token limit.
    """
    if truncated or unfinished(text) or _RE["dangling"].search(text, max(0, len(text) - 40)):
        return True
    if _RE["acts"].search(text, max(0, len(text) - 60)) or _RE["program"].search(
        text, max(0, len(text) - 2000)
    ):
        return True
    tail = text[-_TAIL:].rstrip()
    last = tail[-_PERIOD:]
    if len(set(last)) < 3 or len(last) < _PERIOD:
        return False
    before = tail.rfind(last, 0, len(tail) - 1)
    return before >= 0 and tail.rfind(last, 0, before + len(last) - 1) >= 0


#: A line without an end mark is a short answer up to this length where it is all there is.
_ALONE = 60


def finished(line: str, *, alone: bool) -> bool:
    """Whether an unmarked last line was written to its end: a sentence, a result, a short answer.

    Of 1,263 answers in prose that end in a concluding sentence (RouteLLM's GSM8K) one that
    was whole had no end mark, and it ended in a result; 49 others had been cut.

    Args:
        alone: The line is the whole output.
    """
    line = line.rstrip()
    if not line or (alone and len(line) <= _ALONE) or _RE["result"].search(line):
        return bool(line)
    last = line[-1]
    return (not last.isalnum() and last not in "-−–—,;+*/\\=(<[&>×÷^") or line.endswith("**")


def cut_within(one: Committed, text: str, *, truncated: bool) -> bool:
    """Whether the mark's own text was cut by the end of the output: "The answer is 1"."""
    ends = not text[one.end :].strip(" \t\r\n$*")
    return ends and ((truncated and one.kind != "field") or not one.closed)


#: Characters between two adjacent boxes at most.
NEAR = 90


def adjacent(marks: Sequence[Committed], text: str, index: int) -> list[Committed]:
    """The run of boxes that ends with `marks[index]`, with joining words at most between them.

    "The solutions are \\boxed{3} and \\boxed{4}." answers a list; "\\boxed{3} …
    Correction: … \\boxed{4}" does not.
    """
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
