"""Where an output marks an answer: every mark, in the order of the text.

An output may commit more than once: in a JSON field or a tag, in `\\boxed{}`,
after `####`, on an `Answer:` line, or in a sentence ("the answer is …"), in English
or in the ten languages of `patterns/answer_keywords.yaml`. Which of them counts is
decided in `commitment`.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from routeyard.pipelines.scorers.extraction.keywords import lowered, occurrences
from routeyard.pipelines.scorers.extraction.run_on import end_of_answer
from routeyard.pipelines.scorers.patterns import joined, patterns, table

_RE = patterns("marks")

#: A stated answer is read no further than this, but for the digits of one long
#: number; longer texts are prose.
LONGEST = 2000
#: Only the last commitments are kept: repetitive outputs state thousands.
MOST = 40
#: Of a longer output only the beginning and the end are searched, so that megabytes
#: of repetition take no longer than this much text.
MOST_READ, HEAD = 400_000, 100_000


@dataclass(frozen=True, slots=True)
class Committed:
    """One commitment: `text[start:end]`, and how it was marked.

    `kind` is a row of `commitment.TRUST`: `field`, `boxed`, `hash`, `final`,
    `label`, `stated` or `bold`. `closed` is False for a box or quote that the
    output ends in the middle of.
    """

    kind: str
    start: int
    end: int
    text: str
    closed: bool = True


# Keyword → one pattern that matches from the keyword on; its groups are the kinds of mark, in
# order of preference.
_MARKS = {
    keyword: re.compile(
        "|".join(f"(?P<{kind}>{joined(pattern)})" for kind, pattern in marks.items()),
        re.IGNORECASE,
    )
    for keyword, marks in table("answer_keywords")["keywords"].items()
}
_ASCII_MARKS = tuple(keyword for keyword in _MARKS if keyword.isascii())
_MARKUP = " \t*_#>-`"


def committed(text: str) -> list[Committed]:
    """Commitments in the order of the text; drafts and run-on questions are left out."""
    if len(text) > MOST_READ:
        if end_of_answer(text[:HEAD]) < HEAD:
            return committed(text[:HEAD])
        shift = len(text) - (MOST_READ - HEAD)
        return [
            Committed(one.kind, one.start + shift, one.end + shift, one.text, one.closed)
            for one in committed(text[shift:])
        ]
    end = end_of_answer(text)
    found: deque[Committed] = deque(maxlen=MOST)
    floor = after_draft(text, end)
    keywords = _ASCII_MARKS if text.isascii() else _MARKS
    for position, keyword in occurrences(lowered(text), keywords, end):
        if position < floor or not _starts_word(text, position, keyword):
            continue
        mark = _MARKS[keyword].match(text, position, end)
        if mark is None:
            continue
        kind = mark.lastgroup or ""
        start, stop = _extent(kind, text, mark.end(), end)
        if start < stop and not _supposed(kind, text, position):
            found.append(_made(kind, text, position, start, stop))
            # A field or box is read as a whole; sentences may hold a further mark.
            floor = stop if kind in ("field", "tag", "boxed") else mark.end()
    if (last := _bold_line(text, end)) and (not found or found[-1].end < last.start):
        found.append(last)
    return list(found)


def after_draft(text: str, end: int) -> int:
    """Index behind a closed thinking part that something follows; else 0."""
    closed = text.rfind("</think>", 0, end)
    return closed + 8 if closed >= 0 and text[closed + 8 : end].strip() else 0


def _made(kind: str, text: str, position: int, start: int, stop: int) -> Committed:
    closed = kind != "boxed" or text[stop : stop + 9].lstrip()[:1] == "}" or text[start - 1] == " "
    if kind == "tag":
        kind = "field"
    elif kind in ("label", "stated") and _RE["final"].search(text, max(0, position - 12), position):
        kind = "final"
    elif kind == "label" and text[text.rfind("\n", 0, position) + 1 : position].strip(_MARKUP):
        kind = "stated"  # "so, answer: 5" within a line
    return Committed(kind, start, stop, text[start:stop], closed)


def _bold_line(text: str, end: int) -> Committed | None:
    stop = len(text[max(0, end - 400) : end].rstrip()) + max(0, end - 400)
    begin = text.rfind("\n", 0, stop) + 1
    line = _RE["bold"].fullmatch(text, begin, stop)
    # "**Note: …**" and a heading are bold, and no answers.
    if line is None or begin == 0 or ":" in line["said"]:
        return None
    return Committed("bold", line.start("said"), line.end("said"), line["said"])


def _starts_word(text: str, position: int, keyword: str) -> bool:
    before = text[position - 1 : position]
    if keyword == "a:":  # only at the beginning of a line: "A: 45"
        return text[position] == "A" and not text[max(0, position - 8) : position].rpartition("\n")[
            2
        ].strip(" \t*_")
    return not before.isalnum() if keyword.isascii() else not _continues(before, text[position])


def _continues(before: str, sign: str) -> bool:
    """Whether a letter of the same alphabet stands before (scripts without spaces excepted)."""
    return before.isalpha() and before.islower() and sign.islower()


def _supposed(kind: str, text: str, start: int) -> bool:
    """Whether what is stated holds under a condition only; a box needs a "would" as well."""
    if kind == "boxed" and not _RE["would"].search(text, max(0, start - 40), start):
        return False
    return kind in ("stated", "boxed") and _hypothetical(text, start)


def _hypothetical(text: str, start: int) -> bool:
    """Whether the statement stands under an "if" or "in which case" of its own sentence."""
    before = text[max(0, start - 240) : start]
    return bool(_RE["if"].search(before[before.rfind(". ") + 1 :].rpartition("\n")[2]))


def _extent(kind: str, text: str, start: int, end: int) -> tuple[int, int]:
    if kind == "field":
        return _field_extent(text, start, end)
    if kind == "tag":
        close = _RE["tag_end"].search(text, start, min(end, start + LONGEST))
        return trim(text, start, close.start() if close else _line_end(text, start, end))
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
    for pattern in (_RE["quoted"], _RE["quoted_twice"], _RE["quoted_single"], _RE["bare"]):
        if found := pattern.match(text, start, min(end, start + LONGEST)):
            first, last = found.span(1)
            if text.startswith('\\"', first) and text.endswith('\\"', first + 2, last):
                first, last = first + 2, last - 2  # "answer": "\\"18\\""
            if text[first:last].strip():
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
    return stop if stop >= 0 else _RE["digits"].match(text, cut, end).end()  # type: ignore[union-attr]


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
