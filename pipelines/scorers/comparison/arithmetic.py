"""Arithmetic at a point: exact while values are rational, else in decimals of 90 digits."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import comb, factorial, isqrt
from operator import add, mul
from typing import Any

Number = Fraction | Decimal
Values = dict[str, Fraction]
#: An expression: what it is at a point, exactly or (second argument) in decimals.
Expression = Callable[[Values, bool], Number]

#: Powers of more bits are left to the worker and its time limit.
BITS = 40_000
_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534"
)


class Unclear(Exception):
    """The text, or its value here, is not one that this module can be sure of."""


class Irrational(Exception):
    """A value is not rational: decimals are needed."""


def pi(point: Values, decimals: bool) -> Number:
    if not decimals:
        raise Irrational
    return _PI


def unit(point: Values, decimals: bool) -> Number:
    return Fraction(1)


def as_decimal(value: Number) -> Decimal:
    if isinstance(value, Decimal):
        return value
    return Decimal(value.numerator) / Decimal(value.denominator)


def both(a: Number, b: Number) -> tuple[Number, Number]:
    return (a, b) if type(a) is type(b) else (as_decimal(a), as_decimal(b))


def _combined(
    of: Callable[[Any, Any], Number],
) -> Callable[[Expression, Expression], Expression]:
    """An operation on two expressions, from one on two numbers of one kind."""

    def combine(one: Expression, other: Expression) -> Expression:
        return lambda point, decimals: of(*both(one(point, decimals), other(point, decimals)))

    return combine


def _quotient(a: Any, b: Any) -> Number:
    if not b:
        raise Unclear
    return a / b  # type: ignore[no-any-return]


added, multiplied, divided = _combined(add), _combined(mul), _combined(_quotient)


def scaled(one: Expression, by: int) -> Expression:
    return lambda point, decimals: by * one(point, decimals)


def factorials(one: Expression) -> Expression:
    return lambda point, decimals: Fraction(factorial(_whole(one(point, decimals))))


def chosen(above: Expression, below: Expression) -> Expression:
    return lambda point, decimals: Fraction(
        comb(_whole(above(point, decimals)), _whole(below(point, decimals)))
    )


def _whole(value: Number) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value <= 2_000:
        raise Unclear
    return value.numerator


def raised(base: Expression, exponent: Expression) -> Expression:
    return lambda point, decimals: _power(
        base(point, decimals), exponent(point, decimals), decimals
    )


def _power(base: Number, exponent: Number, decimals: bool) -> Number:
    if isinstance(exponent, Decimal):
        return _decimal_power(base, exponent)
    if not base and exponent <= 0:
        raise Unclear
    if isinstance(base, Fraction):
        size = base.numerator.bit_length() + base.denominator.bit_length()
        if size * abs(exponent) > BITS:
            raise Unclear
        if exponent.denominator == 1:
            return base**exponent.numerator
        root = _root(base, exponent.denominator)
        if root is not None:
            return root**exponent.numerator
        if not decimals:
            raise Irrational
    elif exponent.denominator == 1 and abs(exponent) <= 1_000:
        return base**exponent.numerator
    return _decimal_power(base, as_decimal(exponent))


def _decimal_power(base: Number, exponent: Decimal) -> Decimal:
    if base <= 0:
        raise Unclear  # a complex root
    return as_decimal(base) ** exponent


def _root(value: Fraction, degree: int) -> Fraction | None:
    """The exact root of a positive rational; None when it has none.

    Raises:
        Unclear: the value is negative, and its root a matter of convention.
    """
    if value < 0:
        raise Unclear
    roots = [_whole_root(part, degree) for part in (value.numerator, value.denominator)]
    return None if roots[0] is None or roots[1] is None else Fraction(roots[0], roots[1])


def _whole_root(value: int, degree: int) -> int | None:
    if degree == 2:
        root = isqrt(value)
    elif value.bit_length() < 900 and degree < 64:
        root = round(value ** (1 / degree))
    else:
        return None
    return root if root**degree == value else None
