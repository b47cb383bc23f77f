"""Tables of a release, the order of their rows, and how their Parquet is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.common.untrusted import RELEASED, bounded
from routeyard.schemas import CONTRACTS, Contract

#: Small tables: they are in the `.duckdb` file as well as in Parquet.
IN_DATABASE = (
    "queries",
    "models",
    "labels",
    "splits",
    "model_splits",
    "duplicates",
    "removals",
)
#: Large optional tables: each can be left out of a download.
ADD_ONS = frozenset({"embeddings", "hidden_states", "descriptors"})

#: Tables that stay on disk once they are written; the others are small.
LARGE = frozenset({"queries", "labels", "outcomes", "responses", "verdicts"})

#: Sort order where it differs from the key. A reader mostly wants some models, so whole
#: row groups of the others are skipped; the file is also a quarter smaller.
ORDER: Mapping[str, tuple[str, ...]] = {
    "labels": ("model_id", "query_id"),
    "responses": ("model_id", "query_id", "sample"),
    "verdicts": ("scorer", "scorer_version", "model_id", "query_id", "sample"),
}
ROWS_PER_GROUP = 131_072


def order_of(contract: Contract) -> tuple[str, ...]:
    """Columns that order the rows of a table; together they are its key."""
    return tuple(ORDER.get(contract.name, tuple(contract.key)))


def ordered(contract: Contract, table: pa.Table) -> tuple[pa.Table, bool]:
    """Rows in the release's total order, and whether every key occurs once.

    Text keys are ranked once per distinct value, so that 27 million rows are
    sorted as integers.
    """
    if table.num_rows < 2:
        return table, True
    if _rising([table.column(name) for name in order_of(contract)]):
        return table, True
    codes = [_ranks(table.column(name)) for name in order_of(contract)]
    order = np.lexsort(codes[::-1])
    repeated = np.ones(len(order) - 1, dtype=bool)
    for code in codes:
        along = code[order]
        repeated &= along[1:] == along[:-1]
    unique = not repeated.any()
    if np.array_equal(order, np.arange(len(order))):
        return table, unique
    return table.take(pa.array(order)), unique


def cut(contract: Contract, table: pa.Table) -> Iterator[pa.Table]:
    """A table in the release's order in parts of a row group; one in another order whole."""
    names, there = order_of(contract), table.column_names
    if table.num_rows <= ROWS_PER_GROUP or not set(names) <= set(there):
        yield table
        return
    if not _rising([table.column(name) for name in names]):
        yield table
        return
    for start in range(0, table.num_rows, ROWS_PER_GROUP):
        yield table.slice(start, ROWS_PER_GROUP)


def _rising(columns: Sequence[pa.ChunkedArray]) -> bool:
    """Whether every row comes after the one before it, which most parts do as they arrive."""
    if any(column.null_count for column in columns):
        return False
    rises: Any = False
    for column in reversed(columns):
        before, here = column.slice(0, len(column) - 1), column.slice(1)
        # Strings are compared by bytes, as ids are ordered.
        rises = pc.or_(pc.less(before, here), pc.and_(pc.equal(before, here), rises))
    return bool(pc.all(rises).as_py())


def _ranks(column: pa.ChunkedArray) -> Any:
    """Rank of each value among the distinct values of the column."""
    if not pa.types.is_string(column.type):
        return column.to_numpy()
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    by_rank = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(by_rank), dtype=np.int32)
    rank[by_rank] = np.arange(len(by_rank), dtype=np.int32)
    return rank[encoded.indices.to_numpy()]


class GroupWriter:
    """A Parquet file written in parts: zstd, row groups of one size, descriptions kept.

    The same rows give the same bytes, however they were cut into parts. Use as a
    context manager.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        *,
        sorted_ids: Collection[str] = (),
        counting: Collection[str] = (),
    ) -> None:
        """How columns are stored; what is not named gets a dictionary.

        Floats that hardly repeat in the first row group are stored plane by plane, since
        no dictionary helps them.

        Args:
            sorted_ids: Text in rising order without repeats: what it shares with the row
                before is left out.
            counting: Whole numbers in rising order: differences are stored.
        """
        self._path, self._schema = path, schema
        self._encoding = dict.fromkeys(sorted_ids, "DELTA_BYTE_ARRAY")
        self._encoding |= dict.fromkeys(counting, "DELTA_BINARY_PACKED")
        self._writer: pq.ParquetWriter | None = None
        self._parts: list[pa.Table] = []
        self._waiting = 0

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        encoding = {**self._encoding, **dict.fromkeys(_planes(first), "BYTE_STREAM_SPLIT")}
        return pq.ParquetWriter(
            self._path,
            self._schema,
            compression="zstd",
            compression_level=3,
            use_dictionary=[n for n in _dictionary_columns(self._schema) if n not in encoding],
            column_encoding=encoding or None,
            write_statistics=True,
            store_schema=True,
        )

    def __enter__(self) -> GroupWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close() if exception[0] is None else self.abandon()

    def close(self) -> None:
        """Write the last rows and the footer."""
        self._write(self._waiting)
        (self._writer or self._open(self._schema.empty_table())).close()

    def abandon(self) -> None:
        """Close a file that will not be read; rows that wait are not written."""
        if self._writer is not None:
            self._writer.close()

    def write(self, part: pa.Table) -> None:
        """Write the row groups that are full; the rest waits."""
        self._parts.append(part)
        self._waiting += part.num_rows
        self._write(self._waiting // ROWS_PER_GROUP * ROWS_PER_GROUP)

    def _write(self, rows: int) -> None:
        # An empty row group is a batch of no rows, at which `datasets` stops.
        if not rows:
            return
        table = pa.concat_tables(self._parts)
        for start in range(0, rows, ROWS_PER_GROUP):
            group = table.slice(start, min(ROWS_PER_GROUP, rows - start)).combine_chunks()
            self._writer = self._writer or self._open(group)
            self._writer.write_table(group, row_group_size=ROWS_PER_GROUP)
        self._parts = [table.slice(rows)]
        self._waiting -= rows


def _planes(rows: pa.Table) -> list[str]:
    """Columns of floats most of which are distinct."""
    columns = []
    for field in rows.schema:
        if pa.types.is_floating(field.type):
            values = rows.column(field.name).drop_null()
            if len(values) and pc.count_distinct(values).as_py() > len(values) // 2:
                columns.append(field.name)
    return columns


def sorted_ids(contract: Contract) -> list[str]:
    """Ids of queries that hardly repeat along the release's order."""
    return ["query_id"] if "query_id" in order_of(contract) else []


def write_parquet(table: pa.Table, path: Path) -> None:
    """One Parquet file of a table in memory."""
    with GroupWriter(path, table.schema) as writer:
        writer.write(table)


def _dictionary_columns(schema: pa.Schema) -> list[str]:
    """Low-cardinality columns; long texts hardly ever repeat."""
    long_text = {"text", "prompt", "question", "reason", "logprobs", "error", "vector"}
    return [field.name for field in schema if field.name not in long_text]


def read_parquet(contract: Contract, path: Path) -> pa.Table:
    """A table as its contract defines it; rows are not checked."""
    return contract.conform(pq.read_table(bounded(path, RELEASED)), where=str(path))


def released_names(names: Sequence[str]) -> list[str]:
    """Names in the order of the contracts."""
    return [name for name in CONTRACTS if name in names]
