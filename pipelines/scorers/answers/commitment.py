"""Where an output commits to an answer.

An output may commit more than once: in a JSON field, in `\\boxed{}`, after
`####`, on an `Answer:` line, or in a sentence ("the answer is …"). The
commitments are returned in the order of the text, each with its span; the
scorers take the last, because a later answer corrects an earlier one, and
report a conflict when they differ.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from pipelines.scorers.answers.keywords import lowered, occurrences
from pipelines.scorers.answers.run_on import end_of_answer

#: A stated answer is read no further than this, but for the digits of one long
#: number; longer texts are prose.
LONGEST = 2000
#: Only the last commitments are kept: repetitive outputs state thousands.
MOST = 40


@dataclass(frozen=True, slots=True)
class Committed:
    """One commitment: `text[start:end]`, and how it was marked.

    `kind` is `field`, `boxed`, `hash`, `label` or `stated`.
    """

    kind: str
    start: int
    end: int
    text: str


_HOW = (
    r"\**\s{1,3}(?:(?:to|for|of)\s[^\n.:]{1,80}?\s)?"
    r"(?:is|was|would be|should be|must be|will be|equals|comes (?:out )?to|=)(?!\w)"
    r"(?!\s{1,3}(?:not|n't|never|incorrect|wrong)\b)"
    r"(?:\s{1,3}(?:therefore|thus|simply|then|approximately|about|exactly|just)\b)?\s{0,3}[:：]?"
)
# Keyword → (kind, pattern that matches from the keyword on), in order of preference.
_MARKS: dict[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    keyword: tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in marks)
    for keyword, marks in {
        "answer": (
            ("field", r"answer\\?[\"'] {0,4}:"),
            ("label", r"answer(?: \([^)\n]{0,40}\))?[*_]{0,3} {0,2}[:：=][*_]{0,3}"),
            ("stated", "answer" + _HOW),
        ),
        "result": (("stated", "result" + _HOW),),
        "solution": (("stated", "solution" + _HOW),),
        "boxed": (("boxed", r"boxed(?:\s{0,3}\{| (?=[0-9A-Za-z]))"),),
        "fbox": (("boxed", r"fbox\s{0,3}\{"),),
        "####": (("hash", r"#{4}(?!#)(?= {0,3}[^\s#A-Za-z])"),),
        "ans:": (("label", "ans:"),),
        "a:": (("label", "a:"),),
        "答案": (("label", "答案(?:是|为|：|:)"),),
    }.items()
}
_DIGITS = re.compile(r"[\d,]*")
_IF = re.compile(r"\b(?:if|in which case|had|were)\b", re.IGNORECASE)
# A JSON string, and one whose quotes are themselves escaped because it stands in another.
_QUOTED = re.compile(r'\s{0,40}"((?:[^"\\]|\\.)*)', re.DOTALL)
_QUOTED_TWICE = re.compile(r'\s{0,40}\\"((?:[^"\\\n]|\\[^"\n])*)')
_QUOTED_SINGLE = re.compile(r"\s{0,40}'([^'\n]*)'")
_BARE = re.compile(r"\s{0,40}([^\n}\"]*)")


def committed(text: str) -> list[Committed]:
    """Commitments in the order of the text; run-on questions are left out."""
    end = end_of_answer(text)
    found: deque[Committed] = deque(maxlen=MOST)
    floor = 0
    for position, keyword in occurrences(lowered(text), _MARKS, end):
        if position < floor or not _starts_word(text, position, keyword):
            continue
        for kind, pattern in _MARKS[keyword]:
            mark = pattern.match(text, position, end)
            if mark is None:
                continue
            start, stop = _extent(kind, text, mark.end(), end)
            if start < stop and not (kind == "stated" and _hypothetical(text, position)):
                found.append(Committed(kind, start, stop, text[start:stop]))
                # A field or box is read as a whole; sentences may hold a further mark.
                floor = stop if kind in ("field", "boxed") else mark.end()
            break
    return list(found)


def _starts_word(text: str, position: int, keyword: str) -> bool:
    before = text[position - 1 : position]
    if keyword == "a:":  # only at the beginning of a line: "A: 45"
        return text[position] == "A" and not text[max(0, position - 8) : position].rpartition("\n")[
            2
        ].strip(" \t*_")
    return not before.isalnum() if keyword.isascii() else True


def _hypothetical(text: str, start: int) -> bool:
    """Whether the statement stands under an "if" or "in which case" of its own sentence."""
    before = text[max(0, start - 240) : start]
    return bool(_IF.search(before[before.rfind(". ") + 1 :].rpartition("\n")[2]))


def _extent(kind: str, text: str, start: int, end: int) -> tuple[int, int]:
    if kind == "field":
        return _field_extent(text, start, end)
    if kind == "boxed":
        if text[start - 1] == " ":  # \\boxed 5
            return start, start + 1
        stop = closing_brace(text, start, end)
        return trim(text, start, stop if stop is not None else _line_end(text, start, end))
    stop = _line_end(text, start, end)
    if not text[start:stop].strip(" \t*_:$"):
        # "Answer:" alone on its line: the answer is the next line that says something.
        start, stop = _next_line(text, stop, end)
    return trim(text, start, stop)


def _field_extent(text: str, start: int, end: int) -> tuple[int, int]:
    for pattern in (_QUOTED, _QUOTED_TWICE, _QUOTED_SINGLE, _BARE):
        if found := pattern.match(text, start, min(end, start + LONGEST)):
            first, last = found.span(1)
            if text.startswith('\\"', first) and text.endswith('\\"', first + 2, last):
                first, last = first + 2, last - 2  # "answer": "\\"18\\""
            if first < last and text[first:last].strip():
                return trim(text, first, last)
    return start, start


def closing_brace(text: str, start: int, end: int) -> int | None:
    """Index of the brace that closes the one before `start`; None when it never closes."""
    first = text.find("}", start, min(end, start + 20_000))
    if first < 0 or text.find("{", start, first) < 0:
        return first if first >= 0 else None
    depth = 1
    index = start
    stop = min(end, start + LONGEST)
    while index < stop:
        sign = text[index]
        if sign == "\\":
            index += 2
            continue
        if sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return index
        index += 1
    return None


def _line_end(text: str, start: int, end: int) -> int:
    cut = min(start + LONGEST, end)
    stop = text.find("\n", start, cut)
    return stop if stop >= 0 else _DIGITS.match(text, cut, end).end()  # type: ignore[union-attr]


def _next_line(text: str, start: int, end: int) -> tuple[int, int]:
    index = start
    while index < end and text[index] in " \t\r\n*_":
        index += 1
    stop = _line_end(text, index, end)
    line = text[index:stop].strip()
    if line in ("\\[", "$$", "\\("):  # a display formula opens on a line of its own
        inner = stop + 1
        return inner, _line_end(text, inner, end)
    return index, stop


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without surrounding white space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
