"""Reads a stranger's Parquet file in the limited process: what it comes to, and whether it lies.

One long text that a dictionary holds once and a million rows point to takes some kilobytes, and
gigabytes when it is read; so do rows that are all alike, and zeros that were packed. So a file is
read column by column, and its values are counted as they would be in memory.

A reader that looks for some rows leaves out row groups whose smallest and largest value, or count
of nulls, say that none is there. So a file with false statistics shows other rows to a query than
to somebody who reads all of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

#: Rows and bytes that are read together.
_ROWS, _TOGETHER = 1 << 16, 32 << 20
#: Rows of a batch that is handed over.
_HANDED_OVER = 4096
#: Which values DuckDB believes a column chunk to have, of both kinds of statistics.
_CLAIMS = (
    "SELECT row_group_id, column_id, stats_null_count, stats_min_value, stats_max_value, "
    "stats_min, stats_max FROM parquet_metadata(?)"
)
#: Row group and column → count of nulls, then smallest and largest value, twice; all as text.
Claims = dict[tuple[int, int], tuple[int | None, str | None, str | None, str | None, str | None]]


class TooLarge(Exception):
    """A file comes to more than it may."""


def prepare() -> None:
    """What the process runs before its limits are set: this module's imports, and no others."""
    sys.meta_path.insert(0, NoPandas)


class NoPandas:
    """As if pandas were not installed: Arrow asks for it, and reads files without."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuse `pandas`, leave all else to the finders behind."""
        if name == "pandas":
            raise ModuleNotFoundError("this process reads files without pandas", name=name)


def size(path: str, most: int) -> int:
    """Bytes that a file comes to when it is read; all of it is read.

    Raises:
        TooLarge: it comes to more than `most`.
    """
    return sum(_column_sizes(path, most))


def batches(path: str, most: int) -> Iterator[pa.RecordBatch]:
    """The rows of a file, which come to `most` bytes at most; bytes that are UTF-8 as texts.

    Raises:
        TooLarge: as `size` does, but for the rows before those that are too many.
    """
    with pq.ParquetFile(path) as file:
        result = 0
        _check_footer(file, most)
        for batch in file.iter_batches(_HANDED_OVER):
            result = _added(result, sum(map(unfolded, batch.columns)), most)
            yield texts(batch)


def false_statistics(path: str, literal: str, most: int) -> list[str]:
    """What a file claims wrongly of its values, one sentence for each column.

    Args:
        literal: The path as DuckDB reads it, without signs that name other files.

    Raises:
        TooLarge: as `size` does.
    """
    rows = _duckdb().execute(_CLAIMS, [literal]).fetchall()
    claims: Claims = {(row[0], row[1]): row[2:] for row in rows}
    faults: dict[str, str] = {}
    for _ in _column_sizes(path, most, claims, faults):
        pass
    return [f"{name}: {fault}" for name, fault in faults.items()]


@cache
def _duckdb() -> Any:
    import duckdb

    return duckdb.connect(config={"threads": 1})


def _column_sizes(
    path: str, most: int, claims: Claims | None = None, faults: dict[str, str] | None = None
) -> Iterator[int]:
    """Bytes of each column chunk; what its statistics claim wrongly is added to `faults`."""
    with pq.ParquetFile(path) as file:
        repeated = _check_footer(file, most)
    result = 0
    # What a dictionary holds is measured and compared once, and not for each row.
    with pq.ParquetFile(path, read_dictionary=repeated) as file:
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            for at in range(group.num_columns):
                chunk = group.column(at)
                claim = None if claims is None else claims.get((number, at))
                check = _Chunk(chunk, claim)
                own, each = 0, max(1, chunk.total_uncompressed_size // max(1, group.num_rows))
                rows = _ROWS if chunk.path_in_schema in repeated else _TOGETHER // each
                # By its place: a name with a dot would be read as one within another.
                for batch in file.reader.iter_batches(
                    max(1, min(_ROWS, rows)), row_groups=[number], column_indices=[at]
                ):
                    for column in batch.columns:
                        own += max(unfolded(column), len(column))
                        check.add(column)
                    _added(result, own, most)
                result += own
                if faults is not None and (fault := check.fault()):
                    faults.setdefault(chunk.path_in_schema, fault)
                yield own


def _check_footer(file: pq.ParquetFile, most: int) -> list[str]:
    """Look at each column chunk; columns whose texts the file holds once each, by path.

    Raises:
        TooLarge: by its own footer.
        ValueError: the footer contradicts itself.
    """
    about, schema = file.metadata, file.schema
    declared, encodings = 0, dict[str, set[str]]()
    for number in range(about.num_row_groups):
        group = about.row_group(number)
        for at in range(group.num_columns):
            chunk = group.column(at)
            column = schema.column(at)
            if (chunk.path_in_schema, chunk.physical_type) != (column.path, column.physical_type):
                raise ValueError("row groups whose columns are not those of the schema")
            declared += max(chunk.total_uncompressed_size, group.num_rows)
            if chunk.physical_type == "BYTE_ARRAY":
                encodings.setdefault(column.path, set()).update(chunk.encodings)
    if declared > most or (about.num_rows and not len(schema)):
        raise TooLarge
    # A text that repeats the last one cannot be had as a position.
    return [
        path
        for path, used in encodings.items()
        if "RLE_DICTIONARY" in used and not any(item.startswith("DELTA") for item in used)
    ]


def _added(number: int, more: int, most: int) -> int:
    if number + more > most:
        raise TooLarge
    return number + more


def unfolded(array: pa.Array) -> int:
    """Bytes of an array, texts in a dictionary as often as they are pointed to."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if not _is_text(kind.value_type):
            return int(len(array) * 8)
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(lengths.take(array.indices)).as_py() or 0) + 4 * len(array)
    if pa.types.is_nested(kind):
        return 4 * len(array) + sum(map(unfolded, _within(array)))
    return int(array.nbytes)


def _within(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_map(array.type):
        return [array.keys, array.items]
    if pa.types.is_struct(array.type):
        return list(array.flatten())
    return [array.flatten()]


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


class _Chunk:
    """The values of a column chunk so far, and what its statistics claim of them."""

    def __init__(self, chunk: pq.ColumnChunkMetaData, claim: Any) -> None:
        self.nulls: int | None = claim[0] if claim else None
        self.ends: tuple[str | None, ...] = claim[1:] if claim else ()
        self.skips = chunk.has_offset_index or chunk.has_column_index
        self.skips |= chunk.bloom_filter_offset is not None
        self.checks = claim is not None and any(item is not None for item in claim)
        self.counted, self.within = 0, False
        self.low: Any = None
        self.high: Any = None
        self.type: pa.DataType = pa.null()

    def add(self, values: pa.Array) -> None:
        if not self.checks:
            return
        while pa.types.is_nested(values.type):
            self.within = True
            values = _within(values)[-1]
        self.counted += values.null_count
        if pa.types.is_dictionary(values.type):
            values = values.dictionary.take(values.indices.unique().drop_null())
        self.type = values.type
        try:
            low, high = pc.min_max(_ordered(values)).as_py().values()
        except pa.ArrowNotImplementedError:
            return  # a type without an order
        if low is not None:
            self.low = low if self.low is None else min(self.low, low)
            self.high = high if self.high is None else max(self.high, high)

    def fault(self) -> str:
        """What is false of the chunk; empty where nothing is."""
        if self.skips:
            return "an index or a Bloom filter, which a release does not have"
        if self.nulls is not None and not self.within and self.nulls != self.counted:
            return f"the statistics count {self.nulls:,} nulls of {self.counted:,}"
        if self.low is None:
            return ""
        ends = [_value(end, self.type) for end in self.ends]
        for least, most in (ends[:2], ends[2:]):
            if (least is not None and self.low < least) or (most is not None and self.high > most):
                return "the statistics leave out values that are there"
        return ""


def _ordered(values: pa.Array) -> pa.Array:
    """The values as they are compared: texts as bytes, times as numbers."""
    kind = values.type
    if _is_text(kind):
        return values.cast(pa.large_binary())
    if pa.types.is_temporal(kind):
        return values.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    return values


def _value(claim: str | None, kind: pa.DataType) -> Any:
    """A value that DuckDB wrote as text, as `_ordered` has it; None where it is no such value."""
    if claim is None:
        return None
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return re.sub(
            rb"\\x([0-9A-F]{2})", lambda match: bytes.fromhex(match[1].decode()), claim.encode()
        )
    try:
        return _ordered(_text(claim).cast(kind))[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _text(value: str) -> pa.Array:
    """(1,) a text."""
    return pa.array([value], pa.string())


def texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with columns of bytes as texts, where all of them in the batch are UTF-8.

    Some writers mark no column as text; what is read from such a file would be the Python of
    bytes, `b'…'`.
    """
    for at, column in enumerate(batch.columns):
        wanted = _as_text(column.type)
        if wanted != column.type:
            try:
                cast = column.cast(wanted)
            except pa.ArrowInvalid:
                continue  # bytes of something else
            batch = batch.set_column(at, pa.field(batch.schema.names[at], wanted), cast)
    return batch


def _as_text(kind: pa.DataType) -> pa.DataType:
    """The type with texts in place of bytes, in lists and objects too."""
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.string() if pa.types.is_binary(kind) else pa.large_string()
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_as_text(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _as_text(field.type)) for field in kind])
    return kind
