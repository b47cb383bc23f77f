"""Symbolic comparison of two LaTeX texts; it runs in a limited process (`symbolic.py`).

Some comparisons never end, and math-verify's own time-out works in a main thread only.
"""

from __future__ import annotations

import sys
from random import Random
from typing import Any

#: Digits before the point of a number that are compared at most.
_MOST_DIGITS = 4_000


def prepare() -> None:
    """What the limited process runs first: it imports sympy and its grammar."""
    sys.set_int_max_str_digits(20_000)
    if equal("1", "1") is not True:
        raise RuntimeError("the symbolic comparison does not work: is math-verify whole?")


def equal(one: str, other: str) -> bool | None:
    """Whether two LaTeX scalars or relations are mathematically equal; None: unreadable."""
    try:
        return _equal(*_constants(*map(_read, (one, other))))
    except Exception:  # sympy raises anything, and its parser bare exceptions
        return None


def _read(text: str) -> Any:
    from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy

    config = ConversionConfig(interpret_as_mixed_fractions=False, lowercase_symbols=False)
    return latex2sympy(text, conversion_config=config)


def _equal(first: Any, second: Any) -> bool:
    from math_verify import verify
    from sympy import Expr

    if isinstance(first, Expr) and isinstance(second, Expr):
        symbols = sorted(first.free_symbols | second.free_symbols, key=str)
        settled = None if symbols else _numbers(first, second)
        if settled is not None:
            return settled
        # math-verify is not symmetric and has called different answers equal:
        # both directions must agree, and no substitution may tell the two apart.
        # The substitutions come first because they cost the least.
        if _told_apart(first, second, symbols):
            return False
    return all(
        verify([a], [b], numeric_precision=30, timeout_seconds=None)
        for a, b in ((first, second), (second, first))
    )


def _constants(*both: Any) -> list[Any]:
    """`e` and `i` as the numbers they are, where no other letter is next to them."""
    from sympy import E, Expr, I, MatrixExpr, Symbol

    known = {Symbol("e"): E, Symbol("i"): I}
    names = {str(one) for side in both for one in getattr(side, "free_symbols", ())}
    made = []
    for side in both:
        if isinstance(side, Expr) and not isinstance(side, MatrixExpr) and names <= {"e", "i"}:
            letters = {s: known[Symbol(str(s))] for s in side.free_symbols}
            side = side.subs(letters)
        made.append(side.doit() if isinstance(side, MatrixExpr) else side)
    return made


def _numbers(first: Any, second: Any) -> bool | None:
    """Two numbers are equal when exact or to 45 digits; None when one has no digits.

    Of a number with more digits than that before its point, 11^88, all of those count as well.
    """
    from sympy import Float, log

    if not (first.is_finite and second.is_finite):
        return bool(first == second)
    # 0.1 is one tenth, not the nearest float, before anything is subtracted.
    exact = [_rational(one) for one in (first, second)]
    if all(one.is_Rational for one in exact):
        return bool(exact[0] == exact[1])
    a, b = (one.evalf(60) for one in exact)
    if not (a.is_number and b.is_number):
        return None
    size = max(abs(a), abs(b))
    digits = 45
    if size > 10**30:
        digits += min(int(log(size, 10).evalf(15)), _MOST_DIGITS)
        a, b = (one.evalf(digits + 15) for one in exact)
    return bool(abs(a - b) <= size * Float(10, 15) ** -digits)


def _rational(value: Any) -> Any:
    from sympy import Float, Rational

    return value.xreplace({one: Rational(str(one)) for one in value.atoms(Float)})


def _told_apart(first: Any, second: Any, symbols: list[Any]) -> bool:
    """Whether some substitution of the symbols gives the two different values."""
    from sympy import Rational

    random = Random(20_260)
    for _ in range(4):
        values = {symbol: Rational(random.randint(2, 999), 101) for symbol in symbols}
        try:
            a, b = (one.subs(values).evalf(30) for one in (first, second))
        except Exception:
            return False
        finite = a.is_number and b.is_number and a.is_finite and b.is_finite
        if finite and abs(a - b) > max(abs(a), abs(b)) * 10**-15:
            return True
    return False
