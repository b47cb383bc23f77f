"""Plain expressions compared by value, so that few pairs are left to computer algebra.

Understood are numbers, single letters, `\\pi`, fractions, roots, powers, products,
sums and factorials, in LaTeX. Two rational expressions are equal when they agree
exactly at random rational points (polynomial identity testing: R. Zippel 1979, J. T.
Schwartz 1980), others when they agree there to 45 digits. Whatever may be read in
two ways (`1/2x`, `f(x)`, `2^34`) is not understood, and left to `symbolic`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial, isqrt
from operator import add, mul, neg, sub, truediv
from random import Random

#: Exact while it is rational, else in decimals of 90 digits.
Number = Fraction | Decimal
#: An expression: what it is at a point, where each letter has a value.
Expression = Callable[[dict[str, Fraction]], Number]

#: Longer texts, and powers of more bits, are left to the worker and its time limit.
LONGEST, BITS = 300, 40_000
_DIGITS, _EQUAL, _TINY = 90, Decimal(10) ** -45, Decimal(10) ** -30
_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534"
)
_TOKEN = re.compile(
    r"\s*(\d+(?:\.\d+)?|\.\d+|\\(?:frac|sqrt|binom|pi|cdot|times|div)(?![A-Za-z])"
    r"|[A-Za-z](?:_(?:\w|\{\w{1,4}\}))?|[-+*/^!(){}\[\]])\s*"
)
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4}")
_FACTOR = re.compile(r"[\w.\\({]")
_NUMBER = frozenset(".0123456789")
_FUNCTIONS = frozenset("fghFGHPpy")
_OPERATORS = {"\\cdot": "*", "\\times": "*", "\\div": "/"}
_CLOSES = {"(": ")", "{": "}", "[": "]"}


class Unclear(ArithmeticError):
    """The text, or its value here, is not one that this module can be sure of."""


def same(one: str, other: str) -> bool | None:
    """Whether two expressions are equal; None when this module cannot tell."""
    first, second = _parsed(one), _parsed(other)
    if first is None or second is None:
        return None
    try:
        with localcontext(Context(prec=_DIGITS, Emax=99_999, Emin=-99_999)):
            return _same(first[0], second[0], sorted(first[1] | second[1]))
    except ArithmeticError:  # unclear, a division by zero, too large
        return None


def _same(one: Expression, other: Expression, names: list[str]) -> bool | None:
    random = Random(20_261)
    equal = True
    for _ in range(4 if names else 1):
        # Roots of x² and x agree where x is positive, so half of the values are not.
        point = {
            name: Fraction(random.randint(2, 9_973) * random.choice((1, -1)), 1_009)
            for name in names
        }
        a, b = one(point), other(point)
        exact = isinstance(a, Fraction) and isinstance(b, Fraction)
        equal = a == b if exact else _close(_decimal(a), _decimal(b))
        if not equal:
            break
    # `i` and `e` are letters here. Equal as letters is equal; different may be `i^2` and -1.
    return None if not equal and {"i", "e"} & set(names) else equal


def _decimal(value: Number) -> Decimal:
    if isinstance(value, Decimal):
        return value
    return Decimal(value.numerator) / Decimal(value.denominator)


def _close(a: Decimal, b: Decimal) -> bool:
    size = max(abs(a), abs(b))
    if size < _TINY:
        raise Unclear  # what a cancellation left over
    return abs(a - b) <= size * _EQUAL


def _applied(of: Callable[..., Number], *parts: Expression) -> Expression:
    """What an operation makes of expressions; of numbers of one kind, where it is Python's."""

    def value(point: dict[str, Fraction]) -> Number:
        numbers = [part(point) for part in parts]
        if of in (add, sub, mul, truediv) and type(numbers[0]) is not type(numbers[1]):
            numbers = [_decimal(one) for one in numbers]
        return of(*numbers)

    return value


def _factorial(of: Number) -> Fraction:
    return Fraction(factorial(_whole(of)))


def _chosen(above: Number, below: Number) -> Fraction:
    return Fraction(comb(_whole(above), _whole(below)))


def _whole(value: Number) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value <= 2_000:
        raise Unclear
    return value.numerator


def _power(base: Number, exponent: Number) -> Number:
    if not base and exponent <= 0:
        raise Unclear
    whole = isinstance(exponent, Fraction) and exponent.denominator == 1
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        size = base.numerator.bit_length() + base.denominator.bit_length()
        if size * abs(exponent) > BITS:
            raise Unclear
        root = base if whole else _exact_root(base, exponent.denominator)
        if root is not None:
            return root**exponent.numerator
    elif whole and -1_000 <= exponent <= 1_000:
        return base ** int(exponent)
    if base <= 0:
        raise Unclear  # a complex root
    return _decimal(base) ** _decimal(exponent)


def _root(value: Number, degree: Number = Fraction(2)) -> Number:
    return _power(value, 1 / degree)


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The exact root of a positive rational; None when it has none.

    Raises:
        Unclear: the value is negative, and its root a matter of convention.
    """
    if value < 0:
        raise Unclear
    roots: list[int] = []
    for part in (value.numerator, value.denominator):
        if degree != 2 and (part.bit_length() >= 900 or degree >= 64):
            return None
        roots.append(isqrt(part) if degree == 2 else round(part ** (1 / degree)))
    root = Fraction(*roots)
    return root if root**degree == value else None


@lru_cache(maxsize=65536)
def _parsed(text: str) -> tuple[Expression, frozenset[str]] | None:
    """(expression, its letters); None for a text that is not understood."""
    if len(text) > LONGEST or _WORD.search(text):
        return None
    tokens, at = [], 0
    while token := _TOKEN.match(text, at):
        tokens.append(_OPERATORS.get(token[1], token[1]))
        at = token.end()
    reader = _Reader(tokens)
    try:
        made = reader.sum()
    except (Unclear, RecursionError):
        return None
    read = at == len(text) and reader.at == len(tokens)
    return (made, frozenset(reader.letters)) if read else None


class _Reader:
    """Reads the tokens of one expression from left to right."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = [*tokens, ""]
        self.at = 0
        self.letters: set[str] = set()

    @property
    def next(self) -> str:
        """The next token, empty at the end."""
        return self.tokens[self.at]

    def take(self, *wanted: str) -> str:
        """The next token where it is one of these; else empty."""
        if self.next not in wanted:
            return ""
        self.at += 1
        return self.tokens[self.at - 1]

    def sum(self) -> Expression:
        made = self.product()
        while sign := self.take("+", "-"):
            made = _applied(add if sign == "+" else sub, made, self.product())
        return made

    def product(self) -> Expression:
        negative = self.take("+", "-") == "-"
        made = self.run()
        while sign := self.take("*", "/"):
            minus = self.take("-")
            factor = self.run(alone=sign == "/")  # 1/2x
            factor = _applied(neg, factor) if minus else factor
            made = _applied(mul if sign == "*" else truediv, made, factor)
        return _applied(neg, made) if negative else made

    def run(self, *, alone: bool = False) -> Expression:
        """Factors that are side by side."""
        made = self.power()
        while _FACTOR.match(self.next):
            if alone or self.next[0] in _NUMBER:
                raise Unclear  # "x2", "2 3"
            made = _applied(mul, made, self.power())
        return made

    def power(self) -> Expression:
        base = self.atom()
        while self.take("!"):
            base = _applied(_factorial, base)
        if not self.take("^"):
            return base
        if len(self.next) > 1 and self.next[0] in _NUMBER:
            raise Unclear  # 2^34
        exponent = self.atom()
        if self.next in ("^", "!"):
            raise Unclear
        return _applied(_power, base, exponent)

    def group(self, opening: str = "{") -> Expression:
        if not self.take(opening):
            raise Unclear
        made = self.sum()
        if not self.take(_CLOSES[opening]):
            raise Unclear
        return made

    def atom(self) -> Expression:
        said = self.next
        if said in ("(", "{"):
            return self.group(said)
        self.at += 1
        if said == "\\pi":
            return lambda point: _PI
        if said == "\\sqrt":
            index = [self.group("[")] if self.next == "[" else []
            return _applied(_root, self.group(), *index)
        if said in ("\\frac", "\\binom"):
            of = truediv if said == "\\frac" else _chosen
            return _applied(of, self.group(), self.group())
        if said[:1].isalpha():
            return self.letter(said)
        if said[:1] not in _NUMBER:
            raise Unclear
        value = Fraction(said)
        return lambda point: value

    def letter(self, said: str) -> Expression:
        if self.next == "(" and said[0] in _FUNCTIONS:
            raise Unclear
        name = said.replace("{", "").replace("}", "")
        self.letters.add(name)
        return lambda point: point[name]
