"""Whether two quantities are one answer: exact, repeating, in percent, or within a tolerance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from routeyard.pipelines.scorers.comparison.quantity import Quantity
from routeyard.pipelines.scorers.scorer import ScoringInput

_TIME = re.compile(r"(\d{1,2})(?::(\d\d))?([ap]?)")


def agree(got: Quantity, reference: Quantity, asked: ScoringInput | None = None) -> bool:
    """Whether two quantities are the same answer; symmetric in the first two.

    Percent against a bare number follows the source's policy, `metadata["percent"]`:
    `value` (50 % is 0.5), `points` (50 % is 50), or, where the source states none,
    `either`: the value always, the points where the question asks for a percentage
    or the number exceeds 1.
    """
    question = asked.question.lower() if asked else ""
    metadata = asked.metadata if asked else {}
    if isinstance(got.value, str) or isinstance(reference.value, str):
        return _same_text(got.value, reference.value)
    pairs = [(got.value, reference.value)]
    if got.percent != reference.percent:
        in_percent = "percent" in question or "%" in question
        bare = reference.value if got.percent else got.value
        signed = got.value if got.percent else reference.value
        policy = metadata.get("percent", "either")
        pairs = [] if policy == "points" else [(signed / 100, bare)]
        if policy == "points" or (policy == "either" and (in_percent or abs(signed) > 1)):
            pairs.append((signed, bare))
    return any(_equal(a, b, got, reference, metadata) for a, b in pairs)


def rounds_to(got: Quantity, reference: Quantity) -> bool:
    """Whether a number is a decimal reference when it is rounded to the reference's places."""
    a, b, places = got.value, reference.value, reference.decimals
    if isinstance(a, str) or isinstance(b, str) or got.percent != reference.percent:
        return False
    if _one_float(a, b):  # 499.99999999999994 for the whole number 500
        return True
    if not places:
        return False
    return b.denominator > 1 and abs(a - b) * 10**places * 2 <= 1 and 20 * abs(a - b) <= abs(b)


def _same_text(one: Fraction | str, other: Fraction | str) -> bool:
    """Times and very long numbers; a time on the hour is that hour ("2:00 pm" answers "2")."""
    if str(one) == str(other):
        return True
    first, second = (_TIME.fullmatch(str(value)) for value in (one, other))
    if not first or not second or not (first[2] or second[2]):
        return False
    halves = {first[3], second[3]} - {""}
    return first[1] == second[1] and (first[2] or "00") == (second[2] or "00") and len(halves) < 2


def _equal(
    a: Fraction, b: Fraction, got: Quantity, reference: Quantity, metadata: Mapping[str, object]
) -> bool:
    if a == b or (_one_float(a, b) and a.denominator > 1 < b.denominator):
        return True
    for key, size in (("tolerance", abs(b)), ("absolute_tolerance", 1)):
        allowed = metadata.get(key)
        if isinstance(allowed, int | float) and abs(a - b) <= Fraction(str(allowed)) * size:
            return True
    return _rounded(a, b, got.decimals) or _rounded(b, a, reference.decimals)


def _rounded(decimal: Fraction, exact: Fraction, places: int | None) -> bool:
    """Whether `decimal`, written with `places`, is a longer number rounded or cut off.

    The longer number repeats, or has two and more places than the decimal's two and more: as
    1.1176 beside 1.12, a result beside its rounding.
    """
    if places is None or not (_repeats(exact) or (places > 1 and exact * 10 ** (places + 1) % 1)):
        return False
    step = Fraction(1, 10**places)
    if len(str(abs(int(decimal / step)))) < 3:
        return False
    return abs(decimal - exact) <= step / 2 or 0 <= abs(exact) - abs(decimal) < step


def _one_float(a: Fraction, b: Fraction) -> bool:
    """Whether two values differ in the last digits of a float: 0.6666666666666666 and ...67."""
    if not 0 < abs(a - b) * 2**50 <= max(abs(a), abs(b)):
        return False
    return any(15 <= _digits(one) <= 17 and one.denominator > 1 for one in (a, b))


def _digits(value: Fraction) -> int:
    """Significant digits of a decimal; 0 of one that never ends."""
    if _repeats(value):
        return 0
    whole = abs(value.numerator) * 10 ** value.denominator.bit_length() // value.denominator
    return len(str(whole).strip("0"))


def _repeats(value: Fraction) -> bool:
    """Whether its decimals never end: the denominator divides no power of ten."""
    return pow(10, value.denominator.bit_length(), value.denominator) != 0
