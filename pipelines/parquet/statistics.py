"""Whether the statistics of a Parquet file hold the values that they speak of.

A reader that looks for some rows leaves out row groups whose smallest and largest value, or count
of nulls, say that none is there. So one whose statistics are false shows other rows to a query
than to somebody who reads them all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.parquet.footer import RLE_DICTIONARY, TYPES, Chunk, groups_of

_NUMBERS = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}


def false_statistics(path: Path) -> Iterator[str]:
    """What a file says wrongly of its values, a sentence for each column.

    A column at a time and a row group at a time are read.

    Raises:
        SourceError: the footer cannot be read. pyarrow.ArrowException, OSError: nor can a column.
    """
    told: set[str] = set()
    groups = list(groups_of(path))
    # What a dictionary holds is compared once, and not for each row.
    held = {c.name for g in groups for c in g.chunks if RLE_DICTIONARY in c.encodings and _texts(c)}
    with pq.ParquetFile(path, read_dictionary=sorted(held)) as file:
        for number, group in enumerate(groups):
            for at, chunk in enumerate(group.chunks):
                if chunk.name in told:
                    continue
                if chunk.skips:
                    fault = "an index or a Bloom filter, which a release does not have"
                elif _says_something(chunk):
                    # By its place: a name with a dot would be read as one within another.
                    rows = file.reader.read_row_group(number, column_indices=[at])
                    fault = _fault(chunk, rows)
                else:
                    continue
                if fault:
                    told.add(chunk.name)
                    yield f"{chunk.name}: {fault}"


def _says_something(chunk: Chunk) -> bool:
    said = chunk.statistics
    return any(one is not None for one in (said.low, said.high, *said.old, said.nulls))


def _texts(chunk: Chunk) -> bool:
    return TYPES[chunk.kind] == "BYTE_ARRAY"


def _fault(chunk: Chunk, rows: pa.Table) -> str:
    """What is false of a chunk, whose values alone `rows` holds; empty where nothing is."""
    values, within = rows.column(0), False
    while pa.types.is_nested(values.type):
        within = True
        if pa.types.is_struct(values.type):
            values = pc.struct_field(values, [0])
        else:
            values = pc.list_flatten(values)
    said = chunk.statistics
    if not within and said.nulls is not None and said.nulls != values.null_count:
        return f"the statistics count {said.nulls:,} nulls of {values.null_count:,}"
    if pa.types.is_dictionary(values.type):
        values = pa.chunked_array(
            [part.dictionary.take(part.indices.unique().drop_null()) for part in values.chunks],
            values.type.value_type,
        )
    low, high = _ends(chunk, values)
    if low is None:
        return ""
    for first, last in ((said.low, said.high), said.old):
        least, most = (_value(chunk, values.type, one) for one in (first, last))
        if (least is not None and low < least) or (most is not None and high > most):
            return "the statistics leave out values that are there"
    return ""


def _ends(chunk: Chunk, values: pa.ChunkedArray) -> tuple[Any, Any]:
    """The smallest and the largest value, as the statistics have them."""
    kind = TYPES[chunk.kind]
    if pa.types.is_decimal(values.type):
        return None, None  # no table of a release has some
    if kind in ("INT32", "INT64") and not pa.types.is_integer(values.type):
        values = values.cast(pa.int32() if kind == "INT32" else pa.int64())
    try:
        found = pc.min_max(values).as_py()
    except pa.ArrowNotImplementedError:
        return None, None  # nor others of a type without an order
    low, high = found["min"], found["max"]
    return (low.encode(), high.encode()) if isinstance(low, str) else (low, high)


def _value(chunk: Chunk, of: pa.DataType, said: bytes | None) -> Any:
    kind = TYPES[chunk.kind]
    if said is None or kind == "BYTE_ARRAY":
        return said
    form = _NUMBERS.get(kind, "")
    if not form or struct.calcsize(form) != len(said):
        return None
    form = form.upper() if pa.types.is_unsigned_integer(of) else form
    return struct.unpack(form, said)[0]
