"""What an answer is wrapped in: JSON and almost-JSON, tags, blocks of thinking, chat templates.

Names of keys and tags, and examples, are in `patterns/envelopes.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from routeyard.pipelines.scorers.extraction.keywords import lowered
from routeyard.pipelines.scorers.extraction.languages import LANGUAGES
from routeyard.pipelines.scorers.patterns import patterns, table

_RE = patterns("envelope_signs")
STRUCK = _RE["struck"]


_TABLE = table("envelopes")
#: Rank of a name that holds the answer: the lowest counts; names in `perhaps` rank behind all.
_SURE = tuple(_TABLE["answer"])
NAMES = {
    name: rank
    for rank, name in enumerate(
        chain(_SURE, (noun for one in LANGUAGES[1:] for noun in one.nouns), _TABLE["perhaps"])
    )
}
_PERHAPS = frozenset(_TABLE["perhaps"])
_DRAFTS = frozenset(_TABLE["reasoning"])
_MARKUP = frozenset(_TABLE["markup"])
#: What one of them is in every text that has tags which matter: a closing one, or one left open.
_TAGGED = ("</", "[/", "<think", "<ans", "<ANS", "<Ans", "[ANS", "[ans", "[THINK", "<|", "◁")
#: What one of the actions is in every text that has some, in lower case.
_HANDED = ("finish", "submit", "answer(", "answer[", "answer (", "question(")
_STRING = {quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*", re.DOTALL) for quote in "\"'"}
#: Objects and tags that are looked at; quotes that an almost-JSON string may hold.
_MOST, _QUOTES = 200, 60
#: A longer tag of an unknown name holds no short answer.
_SHORT = 200


class Held(NamedTuple):
    """An answer in an envelope: `text[start:end]`, and whether the envelope's name is sure.

    `outer` is the span of the whole envelope; `closed` is False where the output ends within.
    """

    start: int
    end: int
    sure: bool
    closed: bool
    outer: tuple[int, int]
    tag: bool = False


_DROPPED = str.maketrans("", "", " \t_-*`:")


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    return name.translate(_DROPPED).lower()


def objects(text: str, start: int, end: int) -> Iterator[Held]:
    """The answers in JSON-like objects; an object without an answer is read as text."""
    at = start
    for _ in range(_MOST):
        opening = _RE["object"].search(text, at, end)
        if opening is None:
            return
        fields: list[tuple[int, str, int, int, bool]] = []
        at, closed = opening.end(), False
        while key := _RE["key"].match(text, at, end):
            first, last, at, ended = value(text, key.end(), end)
            name = _plain(key[1])
            if name in NAMES and (first < last or ended):
                fields.append((NAMES[name], name, first, last, ended))
            at = _skipped(text, at, end)
            closed = text.startswith("}", at)
            if closed or at >= end:
                break
        if not fields:
            at = opening.end()
            continue
        _, name, first, last, ended = min(reversed(fields), key=itemgetter(0))
        yield Held(first, last, name not in _PERHAPS, ended, (opening.start(), at + closed))
        at = max(at, last)


def _skipped(text: str, at: int, end: int) -> int:
    return _RE["between"].match(text, at, end).end()  # type: ignore[union-attr]


def value(text: str, start: int, end: int) -> tuple[int, int, int, bool]:
    """(start, end, position behind, whether it was closed) of the value at `start`."""
    sign = text[start : start + 1]
    if sign in _STRING and sign:
        at = start + 1
        for _ in range(_QUOTES):
            stop = _STRING[sign].match(text, at, end).end()  # type: ignore[union-attr]
            if stop >= end or _RE["follows"].match(text, stop + 1, end):
                break
            at = stop + 1  # a quote within, as almost-JSON has it
        first, last = start + 1, stop
        if text.startswith('\\"', first) and text.endswith('\\"', first + 2, last):
            first, last = first + 2, last - 2  # "answer": "\\"18\\""
        return first, last, min(end, stop + 1), stop < end
    if sign and sign in "[{(":
        depth = 0
        for one in _RE["bracket"].finditer(text, start, min(end, start + 20_000)):
            depth += (one[0] in "[({") - (one[0] in "])}")
            if depth == 0:
                return start, one.end(), one.end(), True
        return start, end, end, False
    stop = _RE["bare"].match(text, start, end).end()  # type: ignore[union-attr]
    last = start + len(text[start:stop].rstrip(" ,\t\r"))
    return start, last, stop, stop < end


def elements(text: str, start: int, end: int) -> Iterator[Held]:
    """The answers in tags: `<answer>…</answer>`, `[ANSWER]…[/ANSWER]`, a last `<pick>…</pick>`."""
    opened: list[tuple[str, int, int]] = []
    found: list[Held] = []
    for tag in _tags(text, start, end):
        name = _plain(tag["name"] or tag["name2"])
        if not (tag["end"] or tag["end2"]):
            opened.append((name, tag.start(), tag.end()))
            continue
        place = next((i for i in range(len(opened) - 1, -1, -1) if opened[i][0] == name), None)
        if place is None:
            continue
        _, outer, first = opened[place]
        del opened[place:]
        if name in NAMES:
            sure = name not in _PERHAPS or name == "solution"
            found.append(Held(first, tag.start(), sure, True, (outer, tag.end()), True))
        elif name not in _MARKUP and name not in _DRAFTS and tag["name"]:
            last = not text[tag.end() : end].strip(" \t\r\n.*`")
            if last and tag.start() - first <= _SHORT:
                found.append(Held(first, tag.start(), True, True, (outer, tag.end()), True))
    yield from found
    for name, outer, first in opened[-1:]:  # never closed
        if name in _SURE and (not found or found[-1].end < outer):
            stop = text.find("\n", _skipped(text, first, end), end)
            stop = end if stop < 0 else stop
            yield Held(first, stop, True, False, (outer, stop), True)


def named(text: str, name: str) -> tuple[int, int] | None:
    """Span of what the last tag or JSON key of a name holds; None where the text has none."""
    bare = re.escape(name)
    found = list(re.finditer(rf"<\s?{bare}\s?>|\"{bare}\"\s{{0,4}}:\s{{0,4}}", text, re.IGNORECASE))
    if not found:
        return None
    start = found[-1].end()
    if found[-1][0][0] == '"':
        return value(text, start, len(text))[:2]
    stop = re.compile(rf"<\s?/\s?{bare}\s?>", re.IGNORECASE).search(text, start)
    return start, stop.start() if stop else len(text)


def calls(text: str, start: int, end: int) -> Iterator[Held]:
    """The answers that an agent hands in: `Finish[8]`, `final_answer("8")`."""
    opened = "(" in text or "[" in text
    if not opened or not any(map(lowered(text).__contains__, _HANDED)):
        return
    for call in list(_RE["calls"].finditer(text, start, end))[-_MOST:]:
        _, stop, _, closed = value(text, call.end(), end)
        first, last = call.end() + 1, stop - closed
        if text[first : first + 1] in _STRING and text[last - 1 : last] == text[first : first + 1]:
            first, last = first + 1, last - 1
        if first < last:
            yield Held(first, last, True, closed, (call.start(), stop), True)


def _tags(text: str, start: int, end: int) -> list[re.Match[str]]:
    tagged = ("<" in text or "[" in text or "◁" in text) and any(map(text.__contains__, _TAGGED))
    return list(_RE["tag"].finditer(text, start, end))[-_MOST:] if tagged else []


def thinking(text: str, start: int, end: int) -> Iterator[tuple[str, bool, tuple[int, int]]]:
    """(name, whether it closes, span) of each tag of thinking, however it is bracketed."""
    for tag in _RE["tag"].finditer(text, start, end):
        name = _plain(tag["name"] or tag["name2"])
        if name in _DRAFTS:
            yield name, bool(tag["end"] or tag["end2"]), tag.span()


def drafts(text: str, end: int) -> tuple[list[tuple[int, int]], bool]:
    """Spans of thinking that something follows, and whether the output ends within one."""
    spans = [one.span() for one in STRUCK.finditer(text, 0, end)] if "~~" in text else []
    floor = opening_of(text, end)
    if floor:
        spans.append((0, floor))
    opened: list[tuple[str, int]] = []
    for tag in _tags(text, floor, end):
        name = _plain(tag["name"] or tag["name2"])
        if name not in _DRAFTS:
            continue
        if not (tag["end"] or tag["end2"]):
            opened.append((name, tag.start()))
            continue
        if text[tag.end() : end].strip():
            # Templates may open the block before the output begins.
            own = [place for opener, place in opened if opener == name]
            spans.append((own[-1] if own else 0, tag.end()))
        opened = [one for one in opened if one[0] != name]
    within = any(name.startswith("think") and not text[:at].strip() for name, at in opened)
    return spans, within


def unfinished(text: str) -> bool:
    """Whether an output ends within its thinking, or within an object that holds no answer yet."""
    if drafts(text, len(text))[1]:
        return True
    opening = _RE["object"].search(text) if "{" in text else None
    if opening is None or text[: opening.start()].rstrip("` \n\tjsonJSON"):
        return False
    return "}" not in text[opening.end() :]


def opening_of(text: str, end: int) -> int:
    """Index behind the sign with which a chat template opens the answer, else 0."""
    if not (("<" in text and "<|" in text) or ("[" in text and "[/INST]" in text)):
        return 0
    behind = [one.end() for one in _RE["opens"].finditer(text, 0, end)]
    return behind[-1] if behind and text[behind[-1] : end].strip() else 0


def after_draft(text: str, end: int) -> int:
    """Index behind the thinking that an output begins with and that something follows; else 0."""
    floor = 0
    for start, stop in sorted(drafts(text, end)[0]):
        if not text[floor:start].strip():
            floor = max(floor, stop)
    return floor


def without_closers(text: str, start: int, end: int) -> int:
    """The end without signs of templates and closing tags."""
    if text[end - 1 : end] not in (">", "]", "▷"):
        return end
    closers = _RE["closers"].search(text, max(start, end - 400), end)
    return closers.start() if closers else end
