"""Symbolic comparison of two LaTeX texts; it runs in a limited process (`symbolic.py`).

Each comparison runs in a fork of that process: it begins in the same state whatever was compared
before, and may end as it likes. math-verify's own time-out works in a main thread only.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from collections.abc import Callable
from math import inf, log10
from random import Random
from typing import Any

from routeyard.pipelines.common.machine import OutOfMemory

#: Digits before the point of a number that are compared at most.
_MOST_DIGITS = 4_000
#: Digits of the largest whole number that an expression may have computed on the way, and digits
#: of the exponent of the largest other number.
_LARGEST, _LONGEST_EXPONENT = 2_000_000, 300
#: What a process that compares writes: equal, different, unreadable, equal at random points (so
#: far), beyond a limit.
_EQUAL, _DIFFERENT, _UNREADABLE, _AGREES, _LIMIT = b"T", b"F", b"N", b"A", b"L"
#: Parsed once before the first comparison, so that each begins with the tables that parsing fills.
_COMMON = (
    r"\frac{1}{2}+3x_{1}^{2}-\sqrt{2}\pi\cdot 4.5",
    r"2.5 y(x+1)/3-e^{2t}\cos(2t)",
    r"\sin x\ln(2x)\times 10^{-3}",
)


class TooLarge(Exception):
    """An expression whose value has too many digits to be computed."""


def prepare() -> None:
    """What the limited process runs first: it imports sympy and its grammar."""
    sys.set_int_max_str_digits(20_000)
    if _equal(*_constants(*map(_read, ("1", "1")))) is not True:
        raise RuntimeError("the symbolic comparison does not work: is math-verify whole?")
    for text in _COMMON:
        _read(text)
    gc.freeze()  # a fork that collected garbage would copy every page


def settled(cpu_s: float, *texts: str) -> tuple[bool | None, bool, float]:
    """(whether two texts are equal or None, whether a limit ended the comparison, CPU-seconds).

    Equal is what agrees at random points where only the proof exceeds the limit. Of one text:
    whether it can be evaluated at all.

    Raises:
        OutOfMemory: the process was killed from outside, or may have less memory than its limits.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            gc.disable()
            signal.setitimer(signal.ITIMER_PROF, cpu_s)  # its signal ends the process
            os.write(writing, _said(texts, lambda said: os.write(writing, said)))
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as stream:
        said = stream.read()
    _, status, used = os.wait4(child, 0)
    took = used.ru_utime + used.ru_stime
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if status == signal.SIGKILL or (said.endswith(_LIMIT) and soft == hard >= 0):
        raise OutOfMemory("a comparison of two answers had less memory than its limit")
    last = said[-1:]
    if last in (_EQUAL, _DIFFERENT, _UNREADABLE):
        return {_EQUAL: True, _DIFFERENT: False}.get(last), False, took
    return (True, False, took) if _AGREES in said else (None, True, took)


def _said(texts: tuple[str, ...], say: Callable[[bytes], object]) -> bytes:
    """What a comparison ends with."""
    try:
        sides = [_read(text) for text in texts]
        if len(sides) > 1 and sides[0] == sides[-1]:
            return _EQUAL
        for side in sides:
            _size(side)
        first, last = _constants(sides[0], sides[-1])
        return _EQUAL if _equal(first, last, say) else _DIFFERENT
    except (TooLarge, MemoryError, RecursionError):
        return _LIMIT
    except Exception:  # sympy raises anything, and its parser bare exceptions
        return _UNREADABLE


def _size(node: Any) -> tuple[float, float]:
    """Upper bounds: digits before the point, and of the whole numbers that make it up.

    Raises:
        TooLarge: more digits than can be computed: `9^{9^{9^{9}}}`, `(10^9)!`.
    """
    if getattr(node, "is_Rational", False):
        above, below = (log10(max(abs(item), 1)) for item in (node.p, node.q))
        return above - below, max(above, below)
    if getattr(node, "is_Symbol", False):
        return 1.0, 3.0  # of the values that are put in
    sizes = [_size(part) for part in getattr(node, "args", ())]
    points = [point for point, _ in sizes]
    digits = [whole for _, whole in sizes]
    name = type(node).__name__
    if not sizes:
        size = 1.0, 0.0
    elif name == "Add":
        size = max(points) + log10(len(points)), sum(digits)
    elif name == "Mul":
        size = sum(points), sum(digits)
    elif name in ("Pow", "exp"):
        times = 10 ** min(points[-1], _LONGEST_EXPONENT) if points[-1] > -9 else 0.0
        base, whole = (points[0], digits[0]) if name == "Pow" else (1.0, 0.0)
        whole = 0.0 if node.args[-1].free_symbols else whole
        size = times * abs(base), times * whole
        if points[-1] >= _LONGEST_EXPONENT:
            size = inf, 0.0
    elif "actorial" in name or name in ("binomial", "gamma"):
        times = 10 ** min(points[-1], _LONGEST_EXPONENT) * max(points[0], 1.0)
        size = times, times
    else:
        size = max(points), 0.0
    if max(size) > 10.0**_LONGEST_EXPONENT or size[1] > _LARGEST:
        raise TooLarge
    return size


def _read(text: str) -> Any:
    from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy

    config = ConversionConfig(interpret_as_mixed_fractions=False, lowercase_symbols=False)
    return latex2sympy(text, conversion_config=config)


def _equal(first: Any, second: Any, say: Callable[[bytes], object] = bool) -> bool:
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
        if (apart := _told_apart(first, second, symbols)) is not None:
            if apart:
                return False
            say(_AGREES)
    return all(
        verify([a], [b], numeric_precision=30, timeout_seconds=None)
        for a, b in ((first, second), (second, first))
    )


def _constants(*both: Any) -> list[Any]:
    """`e` and `i` as the numbers they are, where no other letter is next to them."""
    from sympy import E, Expr, I, MatrixExpr, Symbol

    known = {Symbol("e"): E, Symbol("i"): I}
    names = {str(item) for side in both for item in getattr(side, "free_symbols", ())}
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
    exact = [_rational(item.doit() if item.is_rational else item) for item in (first, second)]
    if all(item.is_Rational for item in exact):
        return bool(exact[0] == exact[1])
    a, b = (item.evalf(60) for item in exact)
    if not (a.is_number and b.is_number):
        return None
    size = max(abs(a), abs(b))
    digits = 45
    if size > 10**30:
        digits += min(int(log(size, 10).evalf(15)), _MOST_DIGITS)
        a, b = (item.evalf(digits + 15) for item in exact)
    return bool(abs(a - b) <= size * Float(10, 15) ** -digits)


def _rational(value: Any) -> Any:
    from sympy import Float, Rational

    return value.xreplace({atom: Rational(str(atom)) for atom in value.atoms(Float)})


def _told_apart(first: Any, second: Any, symbols: list[Any]) -> bool | None:
    """Whether some substitution of the symbols tells the two apart; None: not all have values."""
    from sympy import Rational

    random = Random(20_260)
    apart: bool | None = False
    for _ in range(4):
        values = {symbol: Rational(random.randint(2, 999), 101) for symbol in symbols}
        try:
            a, b = (item.subs(values).evalf(30) for item in (first, second))
        except (MemoryError, RecursionError):
            raise
        except Exception:
            return None
        if not (a.is_number and b.is_number and a.is_finite and b.is_finite):
            apart = None
        elif abs(a - b) > max(abs(a), abs(b)) * 10**-15:
            return True
    return apart
