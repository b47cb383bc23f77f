"""One number as people write it → an exact value.

Digits with thousands separators, decimals, fractions, mixed numbers,
scientific notation, percentages, currencies, magnitude words. What fits no
convention has no value: `0,111` is neither 0.111 nor 111.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from routeyard.pipelines.scorers.patterns import patterns, rewrites, table

_RE = patterns("quantity")

#: More digits than this are compared as text: `int()` of them is quadratic and,
#: past 4,300, refused by Python.
MOST_DIGITS = 400
MOST_EXPONENT = 400


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact value; `percent` when a percent sign followed it.

    `value` is a Fraction, or canonical text for what cannot be one (numbers of
    thousands of digits, times of day). `decimals` counts the decimal places
    written, None when the number was not written as a decimal. `comma`: it was
    written with a decimal comma, which a list could be mistaken for.
    """

    value: Fraction | str
    percent: bool = False
    decimals: int | None = None
    comma: bool = False


_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_NUMBERS = table("numbers")
_SIGNS = str.maketrans(_NUMBERS["signs"])
_LATEX = rewrites("latex_rewrites")


def plain(text: str) -> str:
    """The text with LaTeX, markdown and typographic signs put into plain characters.

    Superscripts and vulgar fractions are resolved before Unicode compatibility
    folding, which would read `10⁵` as 105 and `2½` as 21/2.
    """
    if not text.isascii():
        text = _RE["superscript"].sub(lambda m: "^" + m[0].translate(_SUPERSCRIPTS), text)
        text = _RE["vulgar"].sub(lambda m: f"{m[1]} {unicodedata.normalize('NFKC', m[2])}", text)
        text = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
        text = "".join(
            str(unicodedata.decimal(c)) if not c.isascii() and c.isdecimal() else c for c in text
        )
    if _RE["based"].search(text):
        text = _RE["based"].sub(lambda m: str(int(m[0], 0)), text)
    if "sqrt" in text or "√" in text:
        text = _RE["square"].sub(_root, text)
    if "." in text and ("{" in text or "(" in text):
        text = _RE["overline"].sub(_repeating, text)
    if "\\" in text or "{" in text or "~" in text:
        for pattern, replacement in _LATEX:
            text = pattern.sub(replacement, text)
    return text.replace("**", " ") if not re.search(r"\d\*\*-?\d", text) else text


def _root(found: re.Match[str]) -> str:
    square = int(found[1] or found[2] or found[3])
    return f" ({math.isqrt(square)}) " if math.isqrt(square) ** 2 == square else found[0]


def _repeating(found: re.Match[str]) -> str:
    """0.1\\overline{6} as the fraction it is."""
    fixed, period = found[2], found[3] or found[4]
    below = (10 ** len(period) - 1) * 10 ** len(fixed)
    above = int((found[1] or "0") + fixed + period) - int((found[1] or "0") + fixed)
    return f" {above}/{below} "


_MAGNITUDES = {word: 10**power for word, power in _NUMBERS["magnitudes"].items()}


@dataclass(frozen=True, slots=True)
class QuantityMatch:
    """A number in a text: `text[start:end]` and its value; None when malformed."""

    start: int
    end: int
    quantity: Quantity | None
    currency: bool = False


def scan(text: str) -> list[QuantityMatch]:
    """Every number in the text (already made `plain`), in order."""
    found: list[QuantityMatch] = []
    position = 0
    while run := _RE["run"].search(text, position):
        if _RE["raised"].search(text, max(0, run.start() - 4), run.start()):
            position = run.end()  # the 2 of m^2 or x^2
            continue
        one = _read(text, run.start(), run.end(), floor=position)
        found.append(one)
        position = max(one.end, run.end())
    return found


def _with_power(text: str, end: int, digits: str) -> tuple[Fraction | None, int]:
    """(value, end) with an exponent, a power or a fraction after the digits.

    The value is null where it has no bound or no meaning.
    """
    value = Fraction(digits)
    if exponent := _RE["exponent"].match(text, end):
        power = int(exponent[1] or exponent[2])
        bounded = abs(power) <= MOST_EXPONENT
        return value * Fraction(10) ** power if bounded else None, exponent.end()
    if raised := _RE["power"].match(text, end):
        power = int(raised[1])
        unclear = abs(power) > MOST_EXPONENT or len(digits) > 9 or value == 0 > power
        return None if unclear else value**power, raised.end()
    if "." not in digits and (mixed := _RE["mixed"].match(text, end)) and int(mixed[2]):
        return value + Fraction(int(mixed[1]), int(mixed[2])), mixed.end()
    if over := _RE["over"].match(text, end):
        below = _decimal(over[1].lstrip("-"))
        if below is None or len(below) > MOST_DIGITS or Fraction(below) == 0:
            return None, over.end()
        return value / Fraction(below) * (-1 if over[1].startswith("-") else 1), over.end()
    return value, end


def _read(text: str, start: int, end: int, *, floor: int) -> QuantityMatch:
    if clock := _RE["clock"].match(text, start):
        return QuantityMatch(start, clock.end(), _time(clock))
    if spaced := _RE["spaced"].match(text, start):
        end = spaced.end()
        digits: str | None = spaced[0].replace(" ", "").replace(",", ".")
    else:
        digits = _decimal(text[start:end])
    first, negative, currency = _sign(text, start, floor)
    if digits is None:
        return QuantityMatch(first, end, None, currency)
    comma = _RE["comma"].fullmatch(text, start, end) is not None
    decimals = len(digits.partition(".")[2]) if "." in digits else None
    if len(digits) > MOST_DIGITS:
        canonical = ("-" if negative else "") + _canonical(digits)
        return QuantityMatch(first, end, Quantity(canonical, decimals=decimals), currency)
    value, stop = _with_power(text, end, digits)
    if value is None:
        return QuantityMatch(first, stop, None, currency)
    decimals = decimals if stop == end else None
    if magnitude := _RE["magnitude"].match(text, stop):
        word = (magnitude[1] or magnitude[2]).lower()
        if magnitude[1] or word == "k" or currency:
            value, decimals, stop = value * _MAGNITUDES[word], None, magnitude.end()
    percent = _RE["percent"].match(text, stop)
    quantity = Quantity(-value if negative else value, percent is not None, decimals, comma)
    return QuantityMatch(first, percent.end() if percent else stop, quantity, currency)


def _decimal(run: str) -> str | None:
    """Canonical digits of a run, None when its separators fit no convention."""
    if _RE["plain"].fullmatch(run):
        return run
    # A leading zero never opens a thousands group: 0,111 is not 111.
    if run[0] != "0" and (_RE["grouped"].fullmatch(run) or _RE["indian"].fullmatch(run)):
        return run.replace(",", "").replace("'", "").replace("_", "")
    if run[0] != "0" and _RE["european"].fullmatch(run):
        return run.replace(".", "").replace(",", ".")
    return run.replace(",", ".") if _RE["comma"].fullmatch(run) else None


def _canonical(digits: str) -> str:
    whole, _, part = digits.partition(".")
    part = part.rstrip("0")
    return (whole.lstrip("0") or "0") + ("." + part if part else "")


def _sign(text: str, start: int, floor: int) -> tuple[int, bool, bool]:
    """Start with sign and currency included, whether negative, whether a currency."""
    negative = currency = False
    before = text[max(floor, start - 12) : start]
    for _ in range(2):  # -$5 and $-5
        trimmed = before.rstrip("( ")
        if money := _RE["currency"].search(before):
            before, currency = before[: money.start()], True
        elif trimmed.endswith("-") and not negative and _unary(trimmed, before):
            before, negative = trimmed[:-1], True
        elif word := _RE["sign_word"].search(before):
            before, negative = before[: word.start()], True
    if not (negative or currency):
        return start, False, False
    return max(floor, start - 12) + len(before), negative, currency


def _unary(trimmed: str, before: str) -> bool:
    """Whether the minus at the end of `trimmed` is a sign, not a subtraction, dash or hyphen."""
    left = trimmed[:-1]
    if not left:
        return True
    if left[-1] > "\u3000":  # scripts without spaces: 是-3
        return left[-1].isalpha()
    if left[-1].isalnum() or left[-1] in ")%":
        return False
    outer = left.rstrip()
    if not outer:
        return True
    if outer[-1].isdigit() or outer[-1] in ")%":
        return False
    return not outer[-1].isalpha() or trimmed == before.rstrip("(")


def _time(clock: re.Match[str]) -> Quantity:
    hours, minutes = [*re.findall(r"\d+", clock[0]), "00"][:2]
    return Quantity(f"{int(hours)}:{minutes}{(clock[1] or clock[2] or '').lower()}")
