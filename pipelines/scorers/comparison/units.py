"""Units next to numbers, and whether two quantities are the same.

The text is read here, with a closed list of the names that answers use: a letter
behind a number is mostly a variable, and a unit library knows a unit for nearly
every letter ("a" is a year, "c" the speed of light). pint defines the
units and their conversion. Each currency is a separate dimension:
cents are dollars, euros are not.
"""

# ruff: noqa: E501 - the tables and patterns read better in one line
from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from routeyard.pipelines.scorers.comparison.quantities import agree
from routeyard.pipelines.scorers.comparison.quantity import Quantity, QuantityMatch, plain, scan
from routeyard.pipelines.scorers.patterns import patterns, table

_RE = patterns("units")

#: What answers call a unit → pint's name.
_KNOWN = {name: unit for unit, names in table("unit_names").items() for name in names.split()}
#: Pint knows no money.
_MONEY = ("dollar = [money_us]", "cent = dollar / 100", "euro = [money_eu]", "sterling = [money_uk]",
          "yen = [money_jp]", "rupee = [money_in]")  # fmt: skip
#: Relative difference of a conversion that no whole number makes (feet to metres), as rounded.
_ROUNDED = Fraction(1, 2000)

Unit = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """A sum of quantities with units ("5 ft 6 in"), each (value, unit as factors and powers)."""

    parts: tuple[tuple[Quantity, Unit], ...]

    def same_as(self, other: Measure) -> bool:
        """Whether two measures are the same quantity; symmetric."""
        if [unit for _, unit in self.parts] == [unit for _, unit in other.parts]:
            both = zip(self.parts, other.parts, strict=True)
            return all(agree(mine[0], theirs[0]) for mine, theirs in both)
        one, same = _base(self), _base(other)
        if one is None or same is None or one[0] != same[0]:
            return False
        near = _ROUNDED * max(abs(one[1]), abs(same[1]))
        return one[1] == same[1] or (abs(one[1] - same[1]) <= near and not _whole(self, other))


def measured(text: str) -> Measure | None:
    """A text that is a number and its unit, or several ("2 h 30 min"); else None."""
    if len(text) > 120:
        return None
    # "$5$ m" holds a formula, "$5" and "\\$5" are amounts of money.
    shown = _RE["over"].sub(
        lambda over: "/" + re.sub(r"[\s·*-]+(?=[A-Za-z])", "-", over["units"].strip()),
        plain(_RE["formula"].sub(r"\1", text)),
    )
    parts: list[tuple[Quantity, Unit]] = []
    end = 0
    for number in scan(shown):
        gap = shown[end : number.start]
        if number.start < end:
            continue  # the exponent of a unit
        if number.quantity is None or (parts and not _RE["join"].fullmatch(gap)):
            return None
        if not parts and _RE["words"].search(gap) and not _RE["named"].fullmatch(gap):
            return None
        found = _unit_at(shown, number)
        if found is None:
            return None
        unit, end = found
        parts.append((number.quantity, unit))
    if not parts or not _RE["end"].fullmatch(shown, end):
        return None
    return Measure(tuple(parts))


def measure_at(text: str, got: Quantity) -> Measure | None:
    """The measure that begins with the number `got` in a sentence; None without a unit."""
    shown = plain(text[:2000])
    for number in scan(shown):
        if number.quantity == got:
            found = _unit_at(shown, number)
            if found is not None:
                return Measure(((got, found[0]),))
    return None


def _unit_at(text: str, number: QuantityMatch) -> tuple[Unit, int] | None:
    """Unit around a number and where it ends; the currency before it, else what follows it."""
    # `scan` takes a currency sign into the number.
    digit = re.search(r"[\d.]", text[number.start :])
    digits = number.start + (digit.start() if digit else 0)
    money = _RE["before"].search(text, max(0, digits - 12), digits)
    factors = Counter([_KNOWN[money[1].lower()]] if money else [])
    end, over = number.end, 1
    while len(factors) < 4:
        start = end
        if factors:
            joint = _RE["next"].match(text, end)
            if joint is None:
                break
            start, over = joint.end(), -1 if joint["over"] else over
        factor = _RE["factor"].match(text, start)
        unit = _known(factor["word"], joined=bool(factors)) if factor else None
        if factor is None or unit is None:
            break
        if factor["word"] == "in" and not _RE["end"].fullmatch(text, factor.end()):
            break  # "5 in total"
        power = {"s": 2, "c": 3}.get((factor["power"] or "-")[0].lower(), 1)
        factors[unit] += over * int(factor["exponent"] or factor["glued"] or power)
        end = factor.end()
    return (tuple(sorted(factors.items())), end) if factors else None


#: In "W/m^2-C" a letter that is a variable elsewhere; a difference, as one of kelvins.
_DEGREES = {"C": "kelvin", "F": "delta_degree_Fahrenheit"}


def _known(word: str, *, joined: bool = False) -> str | None:
    if joined and word in _DEGREES:
        return _DEGREES[word]
    word = re.sub(r"^deg(?:rees?)?\s?|\s", lambda m: "°" if m[0].strip() else "", word)
    if len(word) == 1 and word not in "mgshlLJWNVK$€£¥₹¢Ω":
        return None
    low = word.lower()
    return _KNOWN.get(low) or (_KNOWN.get(low[:-1]) if low.endswith("s") and len(low) > 3 else None)


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint

    registry: Any = pint.UnitRegistry(cache_folder=None, non_int_type=Fraction)
    for definition in _MONEY:
        registry.define(definition)
    return registry


@lru_cache(maxsize=4096)
def _base(measure: Measure) -> tuple[str, Fraction] | None:
    """(dimension, value in base units) of a measure; None when its parts do not add up."""
    registry = _registry()
    numbers = [(one.value, unit) for one, unit in measure.parts if isinstance(one.value, Fraction)]
    if len(numbers) < len(measure.parts):
        return None
    try:
        based = [
            registry.Quantity(value, registry.UnitsContainer(dict(unit))).to_base_units()
            for value, unit in numbers
        ]
        total = sum(based[1:], based[0])
    except Exception:  # pint's errors share no base worth naming; the unit is then unreadable
        return None
    dimension = str(sorted((str(k), str(v)) for k, v in total.dimensionality.items()))
    return dimension, Fraction(total.magnitude)


def _whole(one: Measure, other: Measure) -> bool:
    """Whether one unit is a whole multiple of the other: nothing is rounded between them."""
    sizes = [_base(Measure(((Quantity(Fraction(1)), m.parts[0][1]),))) for m in (one, other)]
    if not all(size and size[1] for size in sizes):
        return True
    ratio = sizes[0][1] / sizes[1][1]  # type: ignore[index]
    return 1 in (ratio.numerator, ratio.denominator)
