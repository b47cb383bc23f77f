"""Results as values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from datetime import date
from typing import Any


def plain(value: Any) -> Any:
    """A result as JSON holds it: paths and dates as text, tables as rows, no NaN.

    Raises:
        TypeError: the value is of a kind that has no form in JSON.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # JSON has no NaN: what is not known is null, here as in the tables.
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | Iterator):
        return [plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(one) for one in value)
    if isinstance(value, date):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if hasattr(value, "to_pylist"):  # an Arrow table or column
        return plain(value.to_pylist())
    if hasattr(value, "item"):  # a NumPy scalar
        return plain(value.item())
    if hasattr(value, "__fspath__") or hasattr(value, "as_tuple"):
        return str(value)  # a path; a decimal keeps its digits
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"a result holds a {type(value).__name__}, which JSON has no form for")
