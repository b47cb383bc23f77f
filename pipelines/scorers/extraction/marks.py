"""Where an output marks an answer: every mark, in the order of the text.

An output may commit more than once: in a JSON field or a tag (`envelopes`), in
`\\boxed{}`, after `####`, on an `Answer:` line, or in a sentence ("the answer is …"), in
the languages of `patterns/languages.yaml`. Which of them counts is decided in `commitment`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from routeyard.pipelines.scorers.extraction.clauses import denied, doubted, supposed
from routeyard.pipelines.scorers.extraction.envelopes import (
    Held,
    calls,
    drafts,
    elements,
    objects,
    value,
)
from routeyard.pipelines.scorers.extraction.keywords import lowered, occurrences
from routeyard.pipelines.scorers.extraction.languages import (
    ENGLISH,
    NOUNS,
    OTHER,
    ROWS,
    chosen,
    foreign,
)
from routeyard.pipelines.scorers.extraction.run_on import end_of_answer
from routeyard.pipelines.scorers.extraction.statements import (
    LONGEST,
    Committed,
    line,
    line_end,
    stated,
    trim,
)
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("marks")

#: Only the last commitments are kept: repetitive outputs state thousands.
MOST = 40
#: Of a longer output only the beginning and the end are searched, so that megabytes
#: of repetition take no longer than this much text.
MOST_READ, HEAD = 400_000, 100_000


#: Keywords of marks that are no nouns → the kind of mark; the expression has the kind's name.
SIGNS = {"boxed": "boxed", "fbox": "boxed", "####": "hash", "ans:": "label", "a:": "label"}
_QUOTES = ('"', "'", "\\")
_FIRST = (*SIGNS, *ROWS[0]["answer"])


@lru_cache(maxsize=4)
def committed(text: str, *, empty: bool = False, most: int = MOST) -> tuple[Committed, ...]:
    """Commitments in the order of the text; drafts and run-on questions are left out.

    Args:
        empty: Keep empty fields, which answer with an empty text.
        most: How many are kept, the last ones.
    """
    if len(text) > MOST_READ:
        if end_of_answer(text[:HEAD]) < HEAD:
            return committed(text[:HEAD], empty=empty, most=most)
        shift = len(text) - (MOST_READ - HEAD)
        return tuple(
            one._replace(start=one.start + shift, end=one.end + shift)
            for one in committed(text[shift:], empty=empty, most=most)
        )
    end = end_of_answer(text)
    spans, within = drafts(text, end)
    held = _held(text, end, spans)
    lower = lowered(text)
    skipped = [*spans, *(one.outer for one in held)]
    keywords = (*_FIRST, *OTHER.of(lower), *chosen(lower))
    found = list(_stated(text, occurrences(lower, keywords, end), end, skipped))
    if not found and not held:
        found = list(_stated(text, occurrences(lower, foreign(lower), end), end, skipped))
    if within:  # what is stated in an unfinished draft is no answer
        found = [one for one in found if one.kind in ("boxed", "hash")]
    for start, stop, sure, closed, _, tag in held:
        if empty or start < stop:
            kind = "field" if sure else "key"
            found.append(Committed(kind, start, stop, text[start:stop], closed or tag))
    found.sort(key=lambda one: one.start)
    last = None if within else _boldline(text, end)
    if last and (not found or found[-1].end < last.start):
        found.append(last)
    return tuple(found[-most:])


def marks_before(text: str, end: int) -> bool:
    """Whether `text[:end]` may hold a mark, or what a mark behind it is read by."""
    lower = lowered(text)
    head = lower[:end]
    places = occurrences(lower, (*_FIRST, *OTHER.of(lower), *chosen(lower)), end)
    if _RE.hinted("final", head[-16:]) or any(True for _ in _stated(text, places, len(text), [])):
        return True
    enveloped = any(map(head.__contains__, "{<[(~"))
    return enveloped and (
        drafts(text, len(text)) != ([], False) or bool(_held(text, len(text), []))
    )


def _held(text: str, end: int, spans: list[tuple[int, int]]) -> list[Held]:
    """Answers in envelopes, outside drafts and outside each other."""
    every = [*(objects(text, 0, end) if "{" in text else ()), *elements(text, 0, end)]
    every += calls(text, 0, end)
    if len(tags := [one.outer for one in every if one.tag]) > 1:
        # of tags within tags the inner one holds the answer
        every = [
            one
            for one in every
            if not (one.tag and any(one.start <= a < b <= one.end for a, b in tags))
        ]
    every.sort(key=lambda one: (one.outer[0], -one.outer[1]))
    kept: list[Held] = []
    for one in every:
        start, stop = trim(text, one.start, one.end)
        inside = kept and one.outer[0] < kept[-1].outer[1]
        if not inside and not _lies_in(start, spans):
            inner = _inner(text, start, stop) if one.tag else None
            if inner is not None:  # "<answer>So the answer is 5.</answer>"
                start, stop = inner.start, inner.end
            kept.append(one._replace(start=start, end=stop))
    return kept


def _inner(text: str, start: int, stop: int) -> Committed | None:
    """The last mark within a tag."""
    lower = lowered(text)
    keywords = (*_FIRST, *foreign(lower), *OTHER.of(lower))
    found = list(_stated(text, occurrences(lower, keywords, stop), stop, [(0, start)]))
    return found[-1] if found and found[-1].kind != "field" else None


def _lies_in(position: int, spans: list[tuple[int, int]]) -> bool:
    for start, end in spans:  # noqa: SIM110  (any() takes three times as long)
        if start <= position < end:
            return True
    return False


def _stated(
    text: str, places: list[tuple[int, str]], end: int, skipped: list[tuple[int, int]]
) -> Iterator[Committed]:
    """Marks that a keyword opens: boxes, signs, and nouns that name the answer."""
    floor = 0
    for position, keyword in places:
        if position < floor or not _starts_word(text, position, keyword):
            continue
        stop = end
        if skipped:
            if _lies_in(position, skipped):
                continue
            later = (start for start, _ in skipped if start > position and text[start] != "~")
            stop = min(later, default=end)
        if keyword in SIGNS:
            one = _signed(SIGNS[keyword], text, position, stop)
        elif keyword == "answer" and text[position + 6 : position + 7] in _QUOTES:
            one = _signed("field", text, position, stop)
        else:
            one = stated(NOUNS[keyword], text, position, stop)
        if one is not None and not _RE["fence"].fullmatch(one.text):
            yield one
            # A box is read as a whole; sentences may hold a further mark.
            floor = one.end if one.kind == "boxed" else max(one.start, position + 1)


def _signed(kind: str, text: str, position: int, end: int) -> Committed | None:
    mark = _RE[kind].match(text, position, end)
    if mark is None:
        return None
    if kind == "field":  # of an object that is broken, or that is within a string
        span = mark.span("said") if mark["said"] else value(text, mark.end(), end)[:2]
        start, stop = trim(text, *span)
        return Committed("field", start, stop, text[start:stop]) if start < stop else None
    if kind == "boxed":
        start, stop, closed = _box(text, mark.end(), end)
        would = _RE["would"].search(text, max(0, position - 40), position)
        opening = position - text.startswith("\\", position - 1)
        if start == stop or (would and supposed((ENGLISH,), text, position)):
            return None
        if doubted(text, opening) or denied(text, opening, stop):
            return None
        return Committed(kind, start, stop, text[start:stop], closed)
    start, stop = line(text, mark.end(), end)
    if start == stop:
        return None
    return Committed(kind, start, stop, text[start:stop])


def _box(text: str, start: int, end: int) -> tuple[int, int, bool]:
    if text[start - 1] == " ":  # \\boxed 5
        return start, start + 1, True
    close = closing_brace(text, start, end)
    stop = close if close is not None else line_end(text, start, end)
    return *trim(text, start, stop), close is not None


def _boldline(text: str, end: int) -> Committed | None:
    tail = text[max(0, end - 400) : end].rstrip()
    if "**" not in tail and "__" not in tail:
        return None
    stop = len(tail) + max(0, end - 400)
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
    # In a script without spaces any sign may precede.
    joined = (
        before.isalnum() if keyword.isascii() else before.islower() and text[position].islower()
    )
    return not joined


def closing_brace(text: str, start: int, end: int) -> int | None:
    """Index of the brace that closes the one before `start`; None when it never closes."""
    first = text.find("}", start, min(end, start + 20_000))
    if first < 0 or text.find("{", start, first) < 0:
        return first if first >= 0 else None
    depth = 1
    for one in _RE["brace"].finditer(text, start, min(end, start + LONGEST)):
        depth += (one[0] == "{") - (one[0] == "}")
        if depth == 0:
            return one.start()
    return None
