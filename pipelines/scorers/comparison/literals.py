"""Python and JSON literals as values: what a text is, and which two are the same."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

#: Longer texts are not parsed.
LONGEST = 200_000
#: What `ast.literal_eval` does not read.
_NAMED: dict[str, Any] = {
    **{f"{kind.__name__}()": kind() for kind in (frozenset, dict, list, tuple)},
    **{name: float(name) for name in ("nan", "inf", "-inf", "NaN", "Infinity", "-Infinity")},
}


def values_of(text: str) -> list[Any]:
    """The Python or JSON value of a text; empty where it has none or is longer than `LONGEST`."""
    text = text.strip().strip("`").strip()
    if not text or len(text) > LONGEST:
        return []
    if text in _NAMED:
        return [_NAMED[text]]
    try:
        return [ast.literal_eval(text)]
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        return []


def _digits(value: float) -> int:
    """Significant digits of a float as it is printed."""
    return len(repr(abs(value)).partition("e")[0].replace(".", "").strip("0"))


def same(one: Any, other: Any) -> bool:
    """Equal in value and type, at every depth; NaN is itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        if one == other or (math.isnan(one) and math.isnan(other)):
            return True
        # The last digits depend on the order of operations.
        close = math.isclose(one, other, rel_tol=2**-50)
        return close and min(_digits(one), _digits(other)) >= 15
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        if len(one) != len(other):
            return False
        keys = {(type(key), key): key for key in other}
        return all(
            (type(key), key) in keys and same(value, other[keys[type(key), key]])
            for key, value in one.items()
        )
    if isinstance(one, set | frozenset):
        return {(type(v), v) for v in one} == {(type(v), v) for v in other}
    return bool(one == other)
