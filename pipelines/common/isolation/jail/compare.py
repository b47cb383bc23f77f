"""Whether a program's result is the expected one: exact, within a tolerance, in any order.

A job says `tolerance` (relative and absolute, for floating-point tasks) and
`any_order` (the order of lines, or of a list's items, does not count); without
them equality is exact.
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Any


def same_output(shown: str, expected: str, job: dict[str, Any]) -> bool:
    """Printed texts, word by word; numbers by value."""
    left = [line.split() for line in shown.strip().splitlines()]
    right = [line.split() for line in expected.strip().splitlines()]
    if job.get("any_order"):
        left, right = sorted(left), sorted(right)
    if left == right:
        return True
    if [len(line) for line in left] != [len(line) for line in right]:
        return False
    tolerance = float(job.get("tolerance") or 0)
    pairs = zip(chain.from_iterable(left), chain.from_iterable(right), strict=True)
    return all(a == b or _same_number(a, b, tolerance) for a, b in pairs)


def _same_number(a: str, b: str, tolerance: float) -> bool:
    try:
        item, other = Decimal(a), Decimal(b)
    except InvalidOperation:
        return False
    if item.is_nan() or other.is_nan():
        return item.is_nan() and other.is_nan()
    return item == other or (tolerance > 0 and close(float(item), float(other), tolerance))


def close(number: float, other: float, tolerance: float) -> bool:
    """Within the tolerance, relative or absolute, whichever is wider."""
    return math.isclose(number, other, rel_tol=tolerance, abs_tol=tolerance)


def same_value(result: Any, expected: Any, job: dict[str, Any]) -> bool:
    """Values as JSON knows them, compared at every depth."""
    tolerance = float(job.get("tolerance") or 0)
    if job.get("any_order") and isinstance(result, list) and isinstance(expected, list):
        return len(result) == len(expected) and _matched(result, expected, tolerance)
    return _same(result, expected, tolerance)


def _matched(result: list[Any], expected: list[Any], tolerance: float) -> bool:
    left = list(expected)
    for item in result:
        place = next((i for i, other in enumerate(left) if _same(item, other, tolerance)), None)
        if place is None:
            return False
        left.pop(place)
    return True


def _same(result: Any, other: Any, tolerance: float) -> bool:
    if isinstance(result, list) and isinstance(other, list):
        return len(result) == len(other) and all(
            _same(a, b, tolerance) for a, b in zip(result, other, strict=True)
        )
    if isinstance(result, dict) and isinstance(other, dict):
        return result.keys() == other.keys() and all(
            _same(value, other[key], tolerance) for key, value in result.items()
        )
    if type(result) in (int, float) and type(other) in (int, float):
        return bool(result == other) or (tolerance > 0 and close(result, other, tolerance))
    return bool(result == other)


def listed(value: Any) -> Any:
    """Tuples as lists, the way JSON knows them."""
    if isinstance(value, (list, tuple)):
        return [listed(item) for item in value]
    if isinstance(value, dict):
        return {str(key): listed(item) for key, item in value.items()}
    return value
