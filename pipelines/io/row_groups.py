"""Long tables in parts: from a file a row group at a time, ids as positions, no text kept."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.arrays import Ints
from routeyard.schemas import StoredTable

#: Rows of a table in memory that are looked at together.
_ROWS = 1 << 17


def column_batches(
    table: pa.Table | StoredTable, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Some columns of a table in its order; no more than a row group of a file is in memory."""
    if isinstance(table, pa.Table):
        yield from table.select(list(columns)).to_batches(max_chunksize=_ROWS)
        return
    repeated = _in_dictionary(pq.read_metadata(table.path)) & set(columns)
    with pq.ParquetFile(table.path, read_dictionary=sorted(repeated)) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group, columns=list(columns)).to_batches()


def _in_dictionary(about: pq.FileMetaData) -> set[str]:
    """Columns whose texts the file itself holds once each; others cannot be read that way."""
    if not about.num_row_groups:
        return set()
    group = about.row_group(0)
    return {
        chunk.path_in_schema
        for chunk in map(group.column, range(group.num_columns))
        if chunk.physical_type == "BYTE_ARRAY" and "RLE_DICTIONARY" in chunk.encodings
    }


def positions_within(values: pa.Array, known: pa.Array) -> Ints:
    """`positions` in sorted ids, of which those between the values are looked at."""
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    ends = pc.min_max(values.dictionary).as_py()
    if ends["min"] is None:
        return np.full(len(values), -1, dtype=np.int64)
    every = range(len(known))
    first = bisect_left(every, ends["min"], key=lambda i: known[i].as_py())
    after = bisect_right(every, ends["max"], key=lambda i: known[i].as_py())
    found = positions(values, known.slice(first, after - first))
    return np.where(found >= 0, found + first, found)


def positions(values: pa.Array, known: pa.Array) -> Ints:
    """Position of each value in `known`, −1 where it is not listed."""
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    names = values.dictionary.cast(known.type)
    found: Any = pc.fill_null(pc.index_in(names, value_set=known), -1).to_numpy()
    found = np.append(found, -1)  # a null
    at: Ints = pc.fill_null(values.indices, -1).to_numpy()
    return np.asarray(found[at], dtype=np.int64)
