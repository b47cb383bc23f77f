"""A mathematical answer that is one number, as digits or as an ordinal, an hour, a quantity."""

from __future__ import annotations

import re
from functools import lru_cache

from routeyard.pipelines.scorers.comparison.number import numeric_answer
from routeyard.pipelines.scorers.comparison.number_words import spoken
from routeyard.pipelines.scorers.comparison.quantity import Quantity, plain, scan
from routeyard.pipelines.scorers.patterns import patterns
from routeyard.pipelines.scorers.scorer import ScoringInput

_RE = patterns("one_number")


@lru_cache(maxsize=65536)
def number(text: str) -> Quantity | None:
    """The text as one exact number; None when it holds anything but a number."""
    shown = plain(_RE["dollars"].sub("", text)).strip()
    if not _RE["number_only"].fullmatch(shown.strip("() ")):
        said = spoken(shown) if shown.isascii() and len(shown) < 60 else None
        return Quantity(said[0]) if said and said[1:] == (0, len(shown.rstrip("."))) else None
    found = scan(shown)
    one = found[0].quantity if len(found) == 1 else None
    return None if one is not None and one.comma else one


def numbers(text: str) -> list[Quantity]:
    """The number of what is counted ("100 barrels/year"), of a calculation, of "2/3 ≈ 0.667"."""
    if calculation := _RE["calculation"].match(text):
        text = text[calculation.end() :]
    counted = _RE["counted"].fullmatch(text)
    parts = [counted[1]] if counted else _RE["about"].split(text)
    return [one for part in parts if (one := number(part)) is not None]


def looks_numeric(text: str) -> bool:
    """Whether a text is made of digits and their separators, though they fit no convention."""
    return bool(re.fullmatch(r"[-+$]*\d[\d,.']*", text))


def spoken_number(text: str, asked: ScoringInput | None) -> Quantity | None:
    """The number of an ordinal, an hour, or a quantity in a unit that the question names."""
    text, question = text.strip(" $."), asked.question if asked else ""
    if glued := _RE["glued"].fullmatch(text):
        named = re.search(rf"(?:\d\s?|\s){re.escape(glued[2])}\b", question)
        return number(glued[1]) if named and (len(glued[2]) > 1 or named[0][0].isdigit()) else None
    if _RE["hour"].fullmatch(text) and (text[-1] in "mM." or re.search(r"\d:\d\d", question)):
        return numeric_answer(text)
    return numeric_answer(text) if _RE["ordinal"].fullmatch(text) else None
