"""What a clause commits to: nothing where it denies, doubts, supposes, asks or only bounds.

The words of all languages are in `patterns/languages.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from routeyard.pipelines.scorers.extraction.keywords import lowered
from routeyard.pipelines.scorers.extraction.languages import (
    NOUNS,
    Language,
    any_of,
    last_noun,
    listed,
    worded,
)
from routeyard.pipelines.scorers.patterns import hints

_RE = worded("clauses", any_least=any_of(listed("least")))
for _key in ("declines", "retracts"):
    _RE.hints[_key] = tuple({part for word in listed(_key) for part in hints(word)})
_DOUBTING = {word.lower() for word in listed("doubts", "say")}
_RE.hints["doubts"] = tuple(_DOUBTING)
_DOUBT_WORDS = frozenset(word.split()[-1] for word in _DOUBTING)


def denied(text: str, start: int, end: int) -> bool:
    """Whether the value `text[start:end]` is denied or compared with, in any language.

    "not 8", "8 değil", "larger than 8".
    """
    return _DENIED.beside(text, start, end)


def bounds(text: str, start: int, end: int, question: str) -> bool:
    """Whether a value is a bound, "at least 8", "8 以上", where the question asks for none."""
    return _BOUND.beside(text, start, end) and not _asks_bound(question)


@lru_cache(maxsize=8192)
def _asks_bound(question: str) -> bool:
    return _RE["asks_bound"].search(question) is not None


def doubted(text: str, start: int) -> bool:
    """Whether the clause before `start` denies, doubts or ascribes to others what follows.

    "I don't think that", "some people say", in any language.
    """
    before = text[max(0, start - 110) : start].lower()
    begin = max(map(before.rfind, ";:.!?\n" if before.isascii() else ";:.!?\n，。；：")) + 1
    clause = before[begin:]
    if clause.isascii() and _DOUBT_WORDS.isdisjoint(clause.replace(",", " ").split()):
        return False
    return _RE.search("doubts", before, begin, len(before)) is not None


def wonders(text: str, start: int) -> bool:
    """Whether the sentence that holds `start` ends in a question mark."""
    asks = any(map(text.__contains__, "?？؟"))
    return asks and _RE["wonders"].match(text, start) is not None


def supposed(languages: Iterable[Language], text: str, start: int) -> bool:
    """Whether the statement at `start` holds only under a condition.

    Its sentence has an "if" before it, or is in the mood of "would" behind a "suppose".
    """
    around = f"{text[max(0, start - 240) : start]} {text[start : start + 120]}"
    if not any(one.hinted("supposed", around) or one.hinted("would", around) for one in languages):
        return False
    *before, own = _RE["sentence"].split(text[max(0, start - 240) : start])
    if any(one.search("supposed", own, 0, len(own)) for one in languages):
        return True
    rest = _RE["sentence"].split(text[start : start + 120], maxsplit=1)[0]
    told = f"{own} {rest}"
    both = f"{next(filter(None, reversed(before)), '')} {own}"
    return any(
        one.search("would", told, 0, len(told)) and one.search("supposes", both, 0, len(both))
        for one in languages
    )


def supposes(text: str) -> bool:
    """Whether the last sentence tells what the answer would be under a condition."""
    last = last_noun(lowered(text))
    return last is not None and supposed(NOUNS[last[1]], text, last[0])


def declines(text: str) -> bool:
    """Whether a sentence says that it cannot answer, in any language."""
    return _RE.search("declines", lowered(text), 0, len(text)) is not None


def retracts(text: str, end: int) -> bool:
    """Whether a text ends by taking back what it said before `end`: "… just kidding"."""
    tail = text[max(end, len(text) - 60) :].strip(" \n.)*")
    return len(tail) > 1 and _RE.search("retracts", tail, 0, len(tail)) is not None


_SIGNS = " \t\n*$`\"'("
_ASIAN = "\u3040-\u9fff\uac00-\ud7af\u0e00-\u0e7f"


class _Sides:
    """Words that change a value in front of it (`before`) or behind it (`after`).

    A text in ASCII is searched for ASCII words only.
    """

    def __init__(self, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        self.keys = (before, after)
        self.words = lru_cache(self._words)

    def _words(self, only_ascii: bool) -> tuple[tuple[str, ...], re.Pattern[str], re.Pattern[str]]:
        """Last words of `before`, and the expressions for both sides; made when first needed."""
        keep = str.isascii if only_ascii else bool
        first, then = (list(filter(keep, listed(*keys))) for keys in self.keys)
        form = rf"(?:(?<!\w)|(?<=[{_ASIAN}]))(?:{any_of(first)})[\s*$`\"'(€£]{{0,3}}"
        ends = tuple({word.lower().split()[-1] for word in first})
        behind = re.compile(rf"[\s)*$}}\"'”’]{{0,3}}(?:{any_of(then)})", re.IGNORECASE)
        boxed = r"(?:\\f?boxed\{)?$"
        return ends, re.compile(form + boxed, re.IGNORECASE), behind

    def beside(self, text: str, start: int, end: int) -> bool:
        """Whether one of the words is beside `text[start:end]`."""
        if end - start == len(text):
            return False
        begin = max(0, start - 32)
        before, after = text[begin:start], text[end : end + 24]
        before = before.removesuffix("{").removesuffix("\\boxed")
        ends, form, behind = self.words(before.isascii() and after.isascii())
        if before.rstrip(_SIGNS).lower().endswith(ends) and form.search(text, begin, start):
            return True
        said = after.strip(" \n)*$}.")
        return said != "" and behind.match(text, end, end + 24) is not None


_DENIED = _Sides(("not", "than"), ("not_after", "wrong"))
_BOUND = _Sides(("bound",), ("beyond",))
