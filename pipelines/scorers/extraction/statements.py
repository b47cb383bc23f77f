"""The answer that a sentence or a line states: "the answer is 8", "Ответ: 8", "8 is the answer"."""

from __future__ import annotations

import re
from typing import NamedTuple

from routeyard.pipelines.scorers.extraction.clauses import doubted, supposed, wonders
from routeyard.pipelines.scorers.extraction.envelopes import STRUCK, without_closers
from routeyard.pipelines.scorers.extraction.keywords import lowered
from routeyard.pipelines.scorers.extraction.languages import Language
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("marks")

#: A stated answer is read no further than this, but for the digits of one long
#: number; longer texts are prose.
LONGEST = 2000
#: A line that only announces the next one is shorter.
_ANNOUNCED = 60
_MARKUP = " \t*_#>-`【["


class Committed(NamedTuple):
    """One commitment: `text[start:end]`, and how it was marked.

    `kind` is a row of `commitment.TRUST`: `field`, `key`, `boxed`, `hash`, `final`,
    `label`, `stated` or `bold`. `closed` is False for a box or quote that the
    output ends in the middle of.
    """

    kind: str
    start: int
    end: int
    text: str
    closed: bool = True


def stated(languages: list[Language], text: str, position: int, end: int) -> Committed | None:
    """The answer that a noun states, behind it or in front of it; None where it is denied."""
    found: Committed | None = None
    for language in languages:
        mark = language["stated"].match(text, position, end)
        if mark is None:
            one = None if found else _turned(language, text, position, languages)
            found = found or (None if one and language.of_others(text, position) else one)
            continue
        if language.of_others(text, position):
            continue
        start, stop = line(text, mark.end(), end)
        if "|" in mark[0]:
            start, stop = _cell(text, position, start, end)
        refused = language.hinted("refused", text[start:stop]) and language["refused"]
        if refused and refused.match(text, start, stop):
            return None
        one = _behind(language, text, mark, (start, stop), languages)
        if one and (found is None or len(one.text) < len(found.text)):
            found = one  # the language that knows the end of the sentence
    return found


def _behind(
    language: Language,
    text: str,
    mark: re.Match[str],
    span: tuple[int, int],
    languages: list[Language],
) -> Committed | None:
    start, stop = span
    position, label = mark.start(), mark.lastgroup in ("label", "head")
    if mark.lastgroup == "head":  # "### Answer" above it
        begin = max(text.rfind(sign, 0, position) for sign in "\n>") + 1
        if not _RE["heading"].fullmatch(text, begin, position):
            return None
    if not label and _open(languages, text, position, start):
        return None
    reason, other = language.reason_in(text, lowered(text), start + 1, stop)
    if other or (reason < stop and _RE["clause"].fullmatch(text, start, reason)):
        start, stop = trim(text, start, reason)
    if mark["chosen"] and (over := _RE["over"].search(text, start, stop)):
        stop = over.start()
    tail = language.search("tail", text, start, stop)
    if tail and tail.start() > start:
        stop = tail.start()
    if start >= stop:
        return None
    kind = "label" if label else "stated"
    if _RE.search("final", text, max(0, position - 16), mark.end()):
        kind = "final"
    elif label and text[text.rfind("\n", 0, position) + 1 : position].strip(_MARKUP):
        kind = "stated"  # "so, answer: 5" within a line
    return Committed(kind, start, stop, text[start:stop])


def _open(languages: list[Language], text: str, position: int, start: int) -> bool:
    """Whether the statement at `position` is a supposition, a doubt or a question."""
    return supposed(languages, text, position) or doubted(text, position) or wonders(text, start)


def _cell(text: str, position: int, start: int, end: int) -> tuple[int, int]:
    """The cell of a table beside the noun; below it, where the noun heads a column."""
    begin, stop = text.rfind("\n", 0, position) + 1, line_end(text, start, end)
    rule = _RE["rule"].match(text, stop, end)
    if rule is None:
        cut = text.find("|", start, stop)
        return trim(text, start, cut if cut >= 0 else stop)
    column, start = text.count("|", begin, position), rule.end()
    for _ in range(column):
        start = text.find("|", start, end) + 1
    cut = text.find("|", start, end)
    return trim(text, start, cut if cut >= 0 else line_end(text, start, end))


def _turned(
    language: Language, text: str, position: int, languages: list[Language]
) -> Committed | None:
    """ "8 is the answer": a value, and not any word, in front of the noun."""
    begin = max(text.rfind("\n", 0, position) + 1, position - 80)
    mark = language.search("turned", text, begin, position)
    if mark is None or not _RE["value"].fullmatch(mark["said"]):
        return None
    if language.search("negation", text, mark.end("said"), position):
        return None
    if _open(languages, text, mark.start("said"), position):
        return None
    start, stop = mark.span("said")
    opened = text.rfind("$", text.rfind("\n", 0, start) + 1, stop - 1)
    if text[stop - 1] == "$" and opened >= 0:  # "$x > 5$ is the answer"
        start = opened
    return Committed("stated", start, stop, text[start:stop])


def line(text: str, start: int, end: int) -> tuple[int, int]:
    """What a mark holds: the rest of its line, else the next line that says something."""
    if struck := STRUCK.match(text, start + (text[start : start + 1] == " "), end):
        start = struck.end()
    stop = line_end(text, start, end)
    before = text.rfind("\n", max(0, start - 8), start)
    if before >= 0 and not text[before:start].strip():
        start, stop = _nextline(text, start, end)
    elif stop - start < _ANNOUNCED and _RE["announces"].fullmatch(text, start, stop):
        start, stop = _nextline(text, stop, end)
    start, stop = trim(text, start, stop)
    return trim(text, start, without_closers(text, start, stop))


def line_end(text: str, start: int, end: int) -> int:
    cut = min(start + LONGEST, end)
    stop = text.find("\n", start, cut)
    return stop if stop >= 0 else _RE["digits"].match(text, cut, end).end()  # type: ignore[union-attr]


def _nextline(text: str, start: int, end: int) -> tuple[int, int]:
    index = start
    while index < end and text[index] in " \t\r\n*_":
        index += 1
    stop = line_end(text, index, end)
    line = text[index:stop].strip()
    if line in ("\\[", "$$", "\\("):  # a display formula opens on a separate line
        inner = stop + 1
        return inner, line_end(text, inner, end)
    if fenced := _RE["fenced"].match(text, index, end):
        return fenced.span("said")
    item = _RE["item"].match(text, index, stop)
    several = item and _RE["items"].match(text, min(stop + 1, end), end)
    return (item.end() if item and not several else index), stop


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without surrounding white space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
