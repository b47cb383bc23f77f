"""Values of DuckDB that would leave it as others: refused, with the cast that is exact."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.release.query.errors import QueryError

#: DuckDB's types that reach Arrow as something else: a zone or digits lost, or its own bytes.
INEXACT = frozenset(
    {"interval", "time with time zone", "time_ns", "uhugeint", "bit", "bignum", "variant"}
)
#: In the unit of the column: where a day ends, and the value of infinity.
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_ENDLESS = 2**63 - 1
_LARGEST, _SMALLEST = Decimal(10**38 - 1), Decimal(1 - 10**38)


def check_types(names: list[str], types: list[Any]) -> None:
    """Refuse columns of a type that no value survives.

    Raises:
        QueryError: the column, and how to ask for its text.
    """
    for name, kind in zip(names, types, strict=True):
        if found := next((one for one in _kinds(kind) if one in INEXACT), None):
            raise _inexact(name, f"is of type {found.upper()}")


def check_values(batch: pa.RecordBatch) -> None:
    """Refuse the few values that a type holds in DuckDB and not in Arrow or Python.

    Raises:
        QueryError: the column, and how to ask for its text.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for leaf in _leaves(column):
            if lost := _lost(leaf):
                raise _inexact(name, f"holds {lost}")


def _lost(leaf: pa.Array) -> str | None:
    kind = leaf.type
    if pa.types.is_time(kind):
        raw = leaf.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
        return "the time 24:00:00" if _any(pc.greater_equal(raw, _DAY[kind.unit])) else None
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        endless = pc.greater_equal(pc.abs(leaf.cast(pa.int64())), _ENDLESS)
        return "an infinite time" if _any(endless) else None
    if pa.types.is_decimal128(kind) and kind.scale == 0 and kind.precision == 38:
        over = pc.greater(leaf, pa.scalar(_LARGEST, kind))
        beyond = pc.or_(over, pc.less(leaf, pa.scalar(_SMALLEST, kind)))
        return "a number of 39 digits" if _any(beyond) else None
    return None


def _any(found: pa.Array) -> bool:
    return bool(pc.any(found, skip_nulls=True).as_py())


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    kind = column.type
    if pa.types.is_map(kind):
        yield from _leaves(column.keys)
        yield from _leaves(column.items)
    elif (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        yield from _leaves(column.flatten())
    elif pa.types.is_struct(kind):
        for part in column.flatten():
            yield from _leaves(part)
    elif pa.types.is_union(kind):
        for number in range(kind.num_fields):
            yield from _leaves(column.field(number))
    else:
        yield column


def _kinds(kind: Any) -> Iterator[str]:
    """Names of a DuckDB type and of the types within it, in small letters."""
    yield kind.id
    if kind.id in ("list", "array", "struct", "map", "union"):
        for _, part in kind.children:
            if hasattr(part, "id"):  # an array's size is not
                yield from _kinds(part)


def _inexact(name: str, why: str) -> QueryError:
    return QueryError(
        f"the column {name!r} {why}, which would become another value on its way out",
        where="the answer of the query",
        next_step=f'ask for CAST("{name}" AS VARCHAR)',
    )
