"""Numbers written as English words: "twenty-one", "three and a half", "two thirds"."""

from __future__ import annotations

import re
from fractions import Fraction

from routeyard.pipelines.scorers.patterns import table

_TABLE = table("number_words")
UNITS: dict[str, int] = _TABLE["units"]
_TIMES, _SCALES, _PARTS = _TABLE["times"], _TABLE["scales"], _TABLE["parts"]
_ONES = UNITS | _TABLE["tens"]
_SIGNS = ("minus", "negative")
_LINKS = ("and", "a", "an")
#: A run of such words; it neither begins nor ends with "of" or "and".
_SAID = "|".join([*_ONES, *_TIMES, *_SCALES, *_PARTS, *_SIGNS])
_RUN = re.compile(
    rf"(?<![a-z])(?:{_SAID}|an?)(?![a-z])"
    rf"(?:(?:[ -]+(?:{_SAID}|an?|and|of)(?![a-z]))*[ -]+(?:{_SAID})(?![a-z]))?",
    re.IGNORECASE,
)


def spoken(text: str) -> tuple[Fraction, int, int] | None:
    """The first number spelled out in the text, with its span.

    "one" alone is mostly a pronoun, so it counts only when the text begins with it.
    """
    for run in _RUN.finditer(text[:400]):
        words = re.split("[ -]+", run[0].lower())
        if words == ["one"] and text[: run.start()].strip(" *_\"'$"):
            continue
        negative = words[0] in _SIGNS
        if (value := _value(words[negative:])) is not None:
            return -value if negative else value, *run.span()
    return None


def _value(words: list[str]) -> Fraction | None:
    """Value of a run of words; None where they are several numbers or none."""
    if not set(words).difference(_LINKS):
        return None
    total, part = Fraction(0), Fraction(0)
    for index, word in enumerate(words):
        if word in _LINKS:
            continue
        if word in _ONES:
            if not _joins(words, index, part):
                return None
            part += _ONES[word]
        elif word in _TIMES:
            part = Fraction((part or 1) * _TIMES[word])
        elif word in _SCALES:
            total, part = total + (part or 1) * _SCALES[word], Fraction(0)
        elif word not in _PARTS:
            return None
        elif index == 0 or words[index - 1] in ("a", "an"):
            part += Fraction(1, _PARTS[word])
        elif index > 1 and "and" in words[:index]:
            return _mixed(words, index)
        else:
            total, part = Fraction(0), (total + part) / _PARTS[word]
    return total + part


def _joins(words: list[str], index: int, part: Fraction) -> bool:
    """Whether a word goes on with the number before it.

    "one two" and "nineteen eighty" are two numbers, but "three and two thirds" is one.
    """
    if words[index - 1] == "and" and words[index + 1 : index + 2] and words[index + 1] in _PARTS:
        return True
    small = _ONES[words[index]] < 10
    return part % 10 == 0 and part % 100 != 10 if small else part % 100 == 0


def _mixed(words: list[str], index: int) -> Fraction | None:
    """Value of words such as "three and two thirds", whose fraction is named at `index`."""
    if not _PARTS.keys().isdisjoint(words[:index]):
        return None
    cut = index - 1 - words[:index][::-1].index("and")
    one = ["one"] if words[index] in ("half", "quarter") else []  # "two and half"
    whole, over = _value(words[:cut]), _value(words[cut + 1 : index] or one)
    return None if whole is None or over is None else whole + over / _PARTS[words[index]]
