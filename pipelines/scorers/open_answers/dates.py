"""Dates in free text, as far as they are given: "May 2018", "11 May 2018", "2018-05-11"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from routeyard.pipelines.scorers.open_answers.words import WORDS, Word, fold, is_number

_FOOTNOTED_YEAR = re.compile(r"([12]\d{3})[1-9]\d?")
_DAY_MONTH_YEAR = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
#: What follows the parts of a date in Chinese, Japanese and Korean.
_UNITS = tuple("年月日년월일")
_MONTHS = {
    word: place
    for place, row in enumerate(WORDS["months"], start=1)
    for word in fold(row).casefold().split()
}


class Date(NamedTuple):
    """A date as far as it is given."""

    year: int | None
    month: int | None
    day: int | None

    def within(self, other: Date) -> bool:
        """Whether this states all that `other` states, and the same."""
        return all(theirs in (None, mine) for mine, theirs in zip(self, other, strict=True))

    def excludes(self, other: Date) -> bool:
        """Whether the two cannot be one day."""
        return any(None not in (a, b) and a != b for a, b in zip(self, other, strict=True))


def year(form: str) -> int | None:
    """The year that a number can be, also one with a footnote's digit behind it."""
    if len(form) == 4 and form.isdigit() and form[0] in "12":
        return int(form)
    footnoted = _FOOTNOTED_YEAR.fullmatch(form)
    return int(footnoted[1]) if footnoted else None


def dates(found: Sequence[Word]) -> list[tuple[Date, int, int]]:
    """The dates and years among words, in their order, each with its first word and its end."""
    kept = [
        place
        for place, word in enumerate(found)
        if word.form not in _UNITS or not place or not is_number(found[place - 1].form)
    ]
    read = _dates([found[place].form for place in kept])
    return [(date, kept[start], kept[end - 1] + 1) for date, start, end in read]


def _dates(row: Sequence[str]) -> Iterator[tuple[Date, int, int]]:
    index = 0
    while index < len(row):
        start, month = index, _month(row[index])
        index += 1
        if month:
            before, after = _day(row, start - 1), _day(row, start + 1)
            index += after is not None
            when = year(row[index]) if index < len(row) else None
            index += when is not None
            for day in {before, after} - {None} or {None} if before or after or when else ():
                yield Date(when, month, day), start - (before is not None), index
        elif written := _DAY_MONTH_YEAR.fullmatch(row[start]):
            yield Date(*map(int, reversed(written.groups()))), start, index
        elif (when := year(row[start])) is not None:
            month, day = _day(row, index), _day(row, index + 1)
            if month and day and month <= 12:  # 2018-05-11
                index += 2
                yield Date(when, month, day), start, index
            else:
                yield Date(when, None, None), start, index


def is_month(form: str) -> bool:
    """Whether a word is the name of a month."""
    return _month(form) is not None


def _month(form: str) -> int | None:
    return _MONTHS.get(form) or _MONTHS.get(form + "s")


def _day(row: Sequence[str], index: int) -> int | None:
    form = row[index] if 0 <= index < len(row) else ""
    return int(form) if form.isdigit() and len(form) <= 2 and 1 <= int(form) <= 31 else None
