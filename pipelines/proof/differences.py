"""Differences between two versions of a part of a release, as sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

#: Two computations of a figure may differ by so much of it.
CLOSE = 1e-9


def same(a: Any, b: Any, close: float = CLOSE) -> bool:
    """Whether two values of JSON or of a table are equal, floats as far as `close`."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key], close) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y, close) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) or isinstance(b, float):
        numbers = isinstance(a, int | float) and isinstance(b, int | float)
        return numbers and math.isclose(a, b, rel_tol=close, abs_tol=close)
    return bool(a == b)


def values(found: Iterable[tuple[str, Any, Any]], close: float = CLOSE) -> Iterator[str]:
    """One sentence for each (name, stored, expected) whose two values differ."""
    for name, stored, expected in found:
        if not same(stored, expected, close):
            yield f"{name} {stored!r:.200}, expected {expected!r:.200}"


def rows(
    stored: pa.Table, fresh: pa.Table, key: Sequence[str], without: Sequence[str] = ()
) -> list[str]:
    """One sentence for each row that differs, is missing, or should not be there.

    Args:
        key: Columns that name a row.
        without: Columns that are not compared.
    """
    columns = [name for name in fresh.column_names if name not in without]
    order = [(name, "ascending") for name in key]
    stored = stored.select(columns).sort_by(order)
    fresh = fresh.select(columns).sort_by(order)
    if stored.equals(fresh):
        return []
    own, expected = ({tuple(r[k] for k in key): r for r in t.to_pylist()} for t in (stored, fresh))
    found = []
    for name in sorted(own.keys() | expected.keys()):
        shown, row, right = "|".join(map(str, name)), own.get(name), expected.get(name)
        if right is None:
            found.append(f"{shown} is there, expected no such row")
        elif row is None:
            kept = {column: right[column] for column in columns if column not in key}
            found.append(f"{shown} is not there, expected {kept!r:.200}")
        else:
            apart = list(values((c, row[c], right[c]) for c in columns))
            found += [f"{shown} has {'; '.join(apart)}"] if apart else []
    return found
