"""A table that stays on disk, and SQL over tables: what is asked of one without loading it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class StoredTable:
    """A Parquet file in contract form. `schema`, `num_rows` and `column_names` are free."""

    path: Path

    @cached_property
    def schema(self) -> pa.Schema:
        return pq.read_schema(self.path)

    @cached_property
    def num_rows(self) -> int:
        return int(pq.read_metadata(self.path).num_rows)

    @property
    def column_names(self) -> list[str]:
        return list(self.schema.names)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The table, or some of its columns, in memory."""
        return pq.read_table(self.path, columns=list(columns) if columns else None)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, or some of their columns, 65,536 at a time."""
        with pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(1 << 16, columns=list(columns) if columns else None)


@runtime_checkable
class TableStore(Protocol):
    """Tables by name, some of which can be had as their places."""

    def stored(self, name: str) -> StoredTable | None: ...


def register(connection: Any, name: str, table: pa.Table | StoredTable) -> None:
    """Give a DuckDB connection a table by name; one on disk is read when it is asked."""
    if isinstance(table, StoredTable):
        connection.from_parquet(str(table.path)).create_view(name, replace=True)
    else:
        connection.register(name, table)


def statements(path: Path) -> dict[str, str]:
    """Name → SQL of each part of a file; a part begins with a line `-- name: NAME`."""
    parts = re.split(r"^-- name: (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))
