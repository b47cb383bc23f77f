"""Finds words by plain search, so that slow patterns run only where they can match.

A pattern tried at every character costs a hundred times a literal search; the
readers therefore look for their keywords first and match from there.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Occurrences kept when a repetitive output holds thousands: the first and the last.
FIRST, LAST = 200, 800


def lowered(text: str) -> str:
    """The text in lower case, with every character where it was."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := sign.lower()) == 1 else sign for sign in text)


def occurrences(lower: str, words: Iterable[str], end: int) -> list[tuple[int, str]]:
    """(position, word) of every word before `end`, in the order of the text."""
    found = []
    for word in words:
        position = lower.find(word, 0, end)
        while position >= 0:
            found.append((position, word))
            position = lower.find(word, position + len(word), end)
    if len(found) > 1:
        found.sort()
        if len(found) > FIRST + LAST:
            found = found[:FIRST] + found[-LAST:]
    return found
