"""Finds words by plain search, so that slow patterns run only where they can match.

A pattern tried at every character costs a hundred times a literal search; the
readers therefore look for their keywords first and match from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import filterfalse

#: Occurrences kept when a repetitive output holds thousands: the first and the last.
FIRST, LAST = 200, 800


@lru_cache(maxsize=4)
def lowered(text: str) -> str:
    """The text in lower case, with every character where it was."""
    lower = text.lower()
    # İ alone becomes two characters
    return lower if len(lower) == len(text) else "İ".join(map(str.lower, text.split("İ")))


class Words:
    """Words of which few occur in a text in lower case; those that cannot are not looked for."""

    def __init__(self, words: Iterable[str]) -> None:
        self.by_sign: dict[str, list[str]] = {}
        for word in words:
            sign = next(filterfalse(str.isascii, word))
            self.by_sign.setdefault(sign, []).append(word)
        self.signs = re.compile(f"[{''.join(self.by_sign)}]")

    def of(self, lower: str) -> list[str]:
        """The words of which a text has the first sign that is not ASCII."""
        if lower.isascii():
            return []
        return [word for sign in {*self.signs.findall(lower)} for word in self.by_sign[sign]]


def occurrences(lower: str, words: Iterable[str], end: int) -> list[tuple[int, str]]:
    """(position, word) of every word before `end`, in the order of the text."""
    found = []
    for word in filter(lower.__contains__, words):
        position = lower.find(word, 0, end)
        while position >= 0:
            found.append((position, word))
            position = lower.find(word, position + len(word), end)
    if len(found) > 1:
        found.sort()
        if len(found) > FIRST + LAST:
            found = found[:FIRST] + found[-LAST:]
    return found
