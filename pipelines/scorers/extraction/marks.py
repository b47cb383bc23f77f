"""Where an output marks an answer: every mark, in the order of the text.

An output may commit more than once: in a JSON field or a tag (`envelopes`), in
`\\boxed{}`, after `####`, on an `Answer:` line, or in a sentence ("the answer is …"), in
the languages of `patterns/languages.yaml`. Which of them counts is decided in `commitment`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from routeyard.pipelines.scorers.extraction.envelopes import (
    Held,
    drafts,
    elements,
    objects,
    value,
    without_closers,
)
from routeyard.pipelines.scorers.extraction.keywords import lowered, occurrences
from routeyard.pipelines.scorers.extraction.languages import ENGLISH, NOUNS, Language
from routeyard.pipelines.scorers.extraction.run_on import end_of_answer
from routeyard.pipelines.scorers.patterns import patterns

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

    `kind` is a row of `commitment.TRUST`: `field`, `key`, `boxed`, `hash`, `final`,
    `label`, `stated` or `bold`. `closed` is False for a box or quote that the
    output ends in the middle of.
    """

    kind: str
    start: int
    end: int
    text: str
    closed: bool = True


#: Keywords of marks that are no nouns → the kind of mark; the expression has the kind's name.
_SIGNS = {"boxed": "boxed", "fbox": "boxed", "####": "hash", "ans:": "label", "a:": "label",
          'answer"': "field", "answer'": "field", 'answer\\"': "field"}  # fmt: skip
_FIRST = (*_SIGNS, *ENGLISH.nouns)
_ASCII = tuple(noun for noun in NOUNS if noun.isascii() and noun not in ENGLISH.nouns)
_OTHER = tuple(noun for noun in NOUNS if not noun.isascii())
_MARKUP = " \t*_#>-`【["


def committed(text: str, *, empty: bool = False) -> list[Committed]:
    """Commitments in the order of the text; drafts and run-on questions are left out.

    Args:
        empty: Keep empty fields, which answer with an empty text.
    """
    if len(text) > MOST_READ:
        if end_of_answer(text[:HEAD]) < HEAD:
            return committed(text[:HEAD], empty=empty)
        shift = len(text) - (MOST_READ - HEAD)
        return [
            replace(one, start=one.start + shift, end=one.end + shift)
            for one in committed(text[shift:], empty=empty)
        ]
    end = end_of_answer(text)
    spans, within = drafts(text, end)
    held = _held(text, end, spans)
    lower = lowered(text)
    skipped = [*spans, *(one.outer for one in held)]
    found = list(_stated(text, lower, end, _FIRST if text.isascii() else (*_FIRST, *_OTHER), skipped))
    if not found and not held:
        found = list(_stated(text, lower, end, _ASCII, skipped))
    if within:  # what is stated in an unfinished draft is no answer
        found = [one for one in found if one.kind in ("boxed", "hash")]
    found += [_from_envelope(text, one) for one in held if empty or one.start < one.end]
    found.sort(key=lambda one: one.start)
    last = None if within else _bold_line(text, end)
    if last and (not found or found[-1].end < last.start):
        found.append(last)
    return found[-MOST:]


def _held(text: str, end: int, spans: list[tuple[int, int]]) -> list[Held]:
    """Answers in envelopes, outside drafts and outside each other."""
    every: list[Held] = []
    if "{" in text:
        every += objects(text, 0, end)
    if "</" in text or "[" in text or "<" in text:
        every += elements(text, 0, end)
    every.sort(key=lambda one: (one.outer[0], -one.outer[1]))
    kept: list[Held] = []
    for one in every:
        start, stop = trim(text, one.start, one.end)
        inside = kept and one.outer[0] < kept[-1].outer[1]
        if not inside and not _lies_in(start, spans):
            if not (one.tag and stop - start > 200 and _RE["marked"].search(text, start, stop)):
                kept.append(replace(one, start=start, end=stop))
    return kept


def _lies_in(position: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)


def _from_envelope(text: str, one: Held) -> Committed:
    kind = "field" if one.sure else "key"
    return Committed(kind, one.start, one.end, text[one.start : one.end], one.closed or one.tag)


def _stated(
    text: str, lower: str, end: int, keywords: tuple[str, ...], skipped: list[tuple[int, int]]
) -> Iterator[Committed]:
    """Marks that a keyword opens: boxes, signs, and nouns that name the answer."""
    found: deque[Committed] = deque(maxlen=MOST)
    floor = 0
    for position, keyword in occurrences(lower, keywords, end):
        if position < floor or _lies_in(position, skipped):
            continue
        if not _starts_word(text, position, keyword):
            continue
        stop = min((start for start, _ in skipped if start > position), default=end)
        if keyword in _SIGNS:
            one = _signed(_SIGNS[keyword], text, position, stop)
        else:
            one = _said(NOUNS[keyword], text, position, stop)
        if one is not None and not _RE["fence"].fullmatch(one.text):
            found.append(one)
            # A box is read as a whole; sentences may hold a further mark.
            floor = one.end if one.kind == "boxed" else max(one.start, position + 1)
    yield from found


def _signed(kind: str, text: str, position: int, end: int) -> Committed | None:
    mark = _RE[kind].match(text, position, end)
    if mark is None:
        return None
    if kind == "field":  # of an object that is broken, or that stands within a string
        span = mark.span("said") if mark["said"] else value(text, mark.end(), end)[:2]
        start, stop = trim(text, *span)
        return Committed("field", start, stop, text[start:stop]) if start < stop else None
    if kind == "boxed":
        start, stop, closed = _box(text, mark.end(), end)
        would = _RE["would"].search(text, max(0, position - 40), position)
        if start == stop or (would and _supposed(ENGLISH, text, position)):
            return None
        return Committed(kind, start, stop, text[start:stop], closed)
    start, stop = _line(text, mark.end(), end)
    if start == stop:
        return None
    return Committed(kind, start, stop, text[start:stop])


def _box(text: str, start: int, end: int) -> tuple[int, int, bool]:
    if text[start - 1] == " ":  # \\boxed 5
        return start, start + 1, True
    close = closing_brace(text, start, end)
    stop = close if close is not None else _line_end(text, start, end)
    return *trim(text, start, stop), close is not None


def _said(languages: list[Language], text: str, position: int, end: int) -> Committed | None:
    """The answer that a noun states, behind it or in front of it; None where it is denied."""
    found: Committed | None = None
    for language in languages:
        mark = language.stated.match(text, position, end)
        if mark is None:
            found = found or _turned(language, text, position)
            continue
        start, stop = _line(text, mark.end(), end)
        if language.refused and language.refused.match(text, start, stop):
            return None
        found = found or _behind(language, text, mark, start, stop)
    return found


def _behind(
    language: Language, text: str, mark: re.Match[str], start: int, stop: int
) -> Committed | None:
    position, label = mark.start(), mark.lastgroup == "label"
    if not label and _supposed(language, text, position):
        return None
    reason = language.reason.search(text, start + 1, stop)
    if reason and _RE["clause"].fullmatch(text, start, reason.start()):
        start, stop = trim(text, start, reason.start())
    tail = language.tail.search(text, start, stop) if language.tail else None
    if tail and tail.start() > start:
        stop = tail.start()
    if start >= stop:
        return None
    kind = "label" if label else "stated"
    if _RE["final"].search(text, max(0, position - 16), mark.end()):
        kind = "final"
    elif label and text[text.rfind("\n", 0, position) + 1 : position].strip(_MARKUP):
        kind = "stated"  # "so, answer: 5" within a line
    return Committed(kind, start, stop, text[start:stop])


def _turned(language: Language, text: str, position: int) -> Committed | None:
    """ "8 is the answer": a value, and not any word, in front of the noun."""
    begin = max(text.rfind("\n", 0, position) + 1, position - 80)
    mark = language.turned.search(text, begin, position)
    if mark is None or not _RE["value"].fullmatch(mark["said"]):
        return None
    if language.negation.search(text, mark.end("said"), position) or _supposed(
        language, text, position
    ):
        return None
    start, stop = mark.span("said")
    return Committed("stated", start, stop, text[start:stop])


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
        line = text[max(0, position - 8) : position].rpartition("\n")[2]
        return text[position] == "A" and not line.strip(" \t*_")
    return not before.isalnum() if keyword.isascii() else not _continues(before, text[position])


def _continues(before: str, sign: str) -> bool:
    """Whether a letter of the same alphabet stands before (scripts without spaces excepted)."""
    return before.isalpha() and before.islower() and sign.islower()


def _supposed(language: Language, text: str, start: int) -> bool:
    """Whether the statement stands under an "if" or "in which case" of its own sentence."""
    if language.supposed is None:
        return False
    before = _RE["sentence"].split(text[max(0, start - 240) : start])[-1]
    return bool(language.supposed.search(before))


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


def _line(text: str, start: int, end: int) -> tuple[int, int]:
    """What a mark holds: the rest of its line, else the next line that says something."""
    stop = _line_end(text, start, end)
    if not text[start:stop].strip(" \t*_:$"):
        start, stop = _next_line(text, stop, end)
    start, stop = trim(text, start, stop)
    return trim(text, start, without_closers(text, start, stop))


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
