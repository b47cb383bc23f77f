"""Plain expressions compared by value, so that few pairs are left to computer algebra.

Understood are numbers, single letters, `\\pi`, fractions, roots, powers, products,
sums and factorials, in LaTeX. Two rational expressions are equal when they agree
exactly at random rational points (polynomial identity testing: R. Zippel 1979, J. T.
Schwartz 1980), others when they agree there to 45 digits. Whatever may be read in
two ways (`1/2x`, `f(x)`, `2^34`) is not understood, and left to `symbolic`.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, DecimalException, localcontext
from fractions import Fraction
from functools import lru_cache
from random import Random

from routeyard.pipelines.scorers.comparison.arithmetic import (
    Expression,
    Irrational,
    Unclear,
    Values,
    added,
    as_decimal,
    chosen,
    divided,
    factorials,
    multiplied,
    pi,
    raised,
    scaled,
    unit,
)

#: Longer texts are left to the worker and its time limit.
LONGEST = 300
_DIGITS, _EQUAL, _TINY = 90, Decimal(10) ** -45, Decimal(10) ** -30
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<command>\\(?:frac|sqrt|binom|pi|cdot|times|div)(?![A-Za-z]))"
    r"|(?P<letter>[A-Za-z](?:_(?:\w|\{\w{1,4}\}))?)|(?P<sign>[-+*/^!(){}\[\]]))\s*"
)
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4}")
_FUNCTIONS = frozenset("fghFGHPpy")
_OPERATORS = {"\\cdot": "*", "\\times": "*", "\\div": "/"}
_CLOSES = {"(": ")", "{": "}", "[": "]"}


def same(one: str, other: str) -> bool | None:
    """Whether two expressions are equal; None when this module cannot tell."""
    try:
        first, second = _parsed(one), _parsed(other)
        if first is None or second is None:
            return None
        return _same(*first, *second)
    except (Unclear, DecimalException, OverflowError):
        return None


def _same(
    one: Expression, names: frozenset[str], other: Expression, also: frozenset[str]
) -> bool | None:
    every = sorted(names | also)
    random = Random(20_261)
    equal = True
    for _ in range(4 if every else 1):
        # Roots of x² and x agree where x is positive, so half of the values are not.
        point = {
            name: Fraction(random.randint(2, 9_973) * random.choice((1, -1)), 1_009)
            for name in every
        }
        try:
            equal = one(point, False) == other(point, False)
        except Irrational:
            equal = _close(_decimal(one, point), _decimal(other, point))
        except ZeroDivisionError:
            raise Unclear from None
        if not equal:
            break
    # `i` and `e` are letters here. Equal as letters is equal; different may be `i^2` and -1.
    return None if not equal and {"i", "e"} & set(every) else equal


def _decimal(one: Expression, point: Values) -> Decimal:
    with localcontext(Context(prec=_DIGITS, Emax=99_999, Emin=-99_999)):
        try:
            value = one(point, True)
        except ZeroDivisionError:
            raise Unclear from None
        return value if isinstance(value, Decimal) else as_decimal(value)


def _close(a: Decimal, b: Decimal) -> bool:
    size = max(abs(a), abs(b))
    if size < _TINY:
        raise Unclear  # what a cancellation left over
    return abs(a - b) <= size * _EQUAL


@lru_cache(maxsize=65536)
def _parsed(text: str) -> tuple[Expression, frozenset[str]] | None:
    """(expression, its letters); None for a text that is not understood."""
    if len(text) > LONGEST or _WORD.search(text):
        return None
    tokens, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        kind = token.lastgroup or ""
        said = token[kind]
        tokens.append(("sign", _OPERATORS[said]) if said in _OPERATORS else (kind, said))
    reader = _Reader(tokens)
    try:
        made = reader.sum()
    except (Unclear, RecursionError):
        return None
    return (made, frozenset(reader.letters)) if reader.at == len(tokens) else None


class _Reader:
    """Reads the tokens of one expression from left to right."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.at = 0
        self.letters: set[str] = set()

    def next(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def take(self, said: str = "") -> str:
        kind, token = self.next()
        if kind == "end" or (said and token != said):
            raise Unclear
        self.at += 1
        return token

    def sum(self) -> Expression:
        made = self.product()
        while self.next() in (("sign", "+"), ("sign", "-")):
            sign = 1 if self.take() == "+" else -1
            made = added(made, scaled(self.product(), sign))
        return made

    def product(self) -> Expression:
        sign = self.take() if self.next()[1] in ("+", "-") else "+"
        made, _ = self.run()
        while self.next() in (("sign", "*"), ("sign", "/")):
            divides = self.take() == "/"
            negative = self.next()[1] == "-" and bool(self.take())
            factor, factors = self.run()
            if divides and factors > 1:
                raise Unclear  # 1/2x
            factor = scaled(factor, -1) if negative else factor
            made = divided(made, factor) if divides else multiplied(made, factor)
        return scaled(made, -1) if sign == "-" else made

    def run(self) -> tuple[Expression, int]:
        """Factors that are side by side, and how many."""
        made, factors = self.power(), 1
        while self._factor_follows():
            if self.next()[0] == "number":
                raise Unclear  # "x2", "2 3"
            made, factors = multiplied(made, self.power()), factors + 1
        return made, factors

    def _factor_follows(self) -> bool:
        kind, said = self.next()
        return kind in ("number", "letter", "command") or (kind == "sign" and said in "({")

    def power(self) -> Expression:
        base = self.atom()
        while self.next() == ("sign", "!"):
            self.take()
            base = factorials(base)
        if self.next() != ("sign", "^"):
            return base
        self.take()
        kind, said = self.next()
        if kind == "number" and len(said) > 1:
            raise Unclear  # 2^34
        exponent = self.group() if said == "{" else self.atom()
        if self.next() in (("sign", "^"), ("sign", "!")):
            raise Unclear
        return raised(base, exponent)

    def group(self, opening: str = "{") -> Expression:
        self.take(opening)
        made = self.sum()
        self.take(_CLOSES[opening])
        return made

    def atom(self) -> Expression:
        kind, said = self.next()
        if kind == "sign" and said in "({":
            return self.group(said)
        self.take()
        if kind == "number":
            value = Fraction(said)
            return lambda point, decimals: value
        if kind == "letter":
            if self.next()[1] == "(" and said[0] in _FUNCTIONS:
                raise Unclear
            name = said.replace("{", "").replace("}", "")
            self.letters.add(name)
            return lambda point, decimals: point[name]
        if said == "\\pi":
            return pi
        if said == "\\frac":
            return divided(self.group(), self.group())
        if said == "\\binom":
            return chosen(self.group(), self.group())
        if said == "\\sqrt":
            index = self.group("[") if self.next()[1] == "[" else None
            inside = self.group()
            two: Expression = lambda point, decimals: Fraction(2)  # noqa: E731
            return raised(inside, divided(unit, index or two))
        raise Unclear
