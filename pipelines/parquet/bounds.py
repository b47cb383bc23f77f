"""Whether a Parquet file unfolds to more than a person would have written.

One long text that a dictionary holds once and a million rows point to takes some kilobytes, and
gigabytes when it is read; so do rows that are all alike, and zeros that were packed. What a file
comes to is added up from the headers of its pages; only where they leave it open are texts read,
as positions in their dictionaries, and their lengths added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.files import MAX_RATIO, damaged, regular, too_large
from pipelines.parquet.pages import WrongPage, pages

#: A table of a release may unfold to so many times its size: of labels most columns say the same
#: in each row, and millions of them reach some hundreds. Nothing else that is written does.
RELEASED = 5_000
#: So many bytes are read of any file.
ANYWAY = 500_000_000
_PLAIN_DICTIONARY, _DELTA_BYTE_ARRAY, _RLE_DICTIONARY = 2, 7, 8
_WIDTH = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "BYTE_ARRAY": 4}
#: Rows that are read together, and bytes that they may come to where a text repeats the last.
_ROWS, _TOGETHER = 1 << 16, 1 << 26


def bounded(path: Path, ratio: int = MAX_RATIO) -> Path:
    """The path of a Parquet file, when what it holds can be read.

    Raises:
        SourceError: it is no Parquet file, is damaged, or unfolds to more than `ratio` times its
            size and more than `ANYWAY` bytes.
    """
    regular(path)
    most = max(ANYWAY, ratio * path.stat().st_size)
    try:
        with pq.ParquetFile(path) as file:
            fits = _fits(path, file, most)
    except (pa.ArrowException, WrongPage, OSError) as error:
        raise damaged(path, error) from error
    if not fits:
        raise too_large(path, f"unfolds to more than {most:,} bytes")
    return path


def _fits(path: Path, file: pq.ParquetFile, most: int) -> bool:
    about: Any = file.metadata
    at_least: int
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    rows = max(about.num_rows, sum(group.num_rows for group in groups))
    if rows and not about.num_columns:
        return False
    at_least, more = rows, 0
    unknown: dict[int, int] = {}
    with path.open("rb") as stream:
        for number in range(about.num_columns):
            for group in groups:
                least, at_most, longest = _sizes(stream, group.column(number), file.schema, number)
                at_least, more = at_least + least, more + at_most
                if at_least > most:
                    return False
                if at_most:
                    unknown[number] = max(longest, unknown.get(number, 0))
    if at_least + more <= most:
        return True
    return at_least + _measured(path, file.schema, unknown) <= most


def _sizes(
    stream: BinaryIO, chunk: Any, schema: pq.ParquetSchema, number: int
) -> tuple[int, int, int]:
    """Bytes that a column chunk takes at least, that its texts may add, and of its longest page.

    The last is 0 unless its texts may repeat parts of each other.
    """
    column = schema.column(number)
    kind = column.physical_type
    width = column.length if kind == "FIXED_LEN_BYTE_ARRAY" else _WIDTH.get(kind, 8)
    least = more = held = longest = 0
    repeats = False
    for page in pages(stream, chunk):
        longest = max(longest, page.size)
        least += page.size
        if page.dictionary:
            held = max(held, page.size)
            continue
        least += page.values * width
        if kind != "BYTE_ARRAY":
            continue
        if page.encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY):
            more += page.values * held
        elif page.encoding == _DELTA_BYTE_ARRAY:
            more += page.values * page.size
            repeats = True
    return least, more, longest if repeats else 0


def _measured(path: Path, schema: pq.ParquetSchema, unknown: Mapping[int, int]) -> float:
    """Bytes of the texts of some columns (number → longest page, as `_sizes` gives it)."""
    total = 0
    for number, longest in unknown.items():
        column = schema.column(number)
        if longest and column.max_repetition_level:
            return float("inf")  # a row could hold any number of them
        rows = max(1, _TOGETHER // longest) if longest else _ROWS
        # A text that repeats the last one cannot be had as a position.
        positions = None if longest else [column.path]
        with pq.ParquetFile(path, read_dictionary=positions) as file:
            for batch in file.iter_batches(rows, columns=[column.path]):
                total += sum(map(_texts, batch.columns))
    return total


def _texts(array: pa.Array) -> int:
    """Bytes of all texts of an array, those in a dictionary as often as they are pointed to."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(lengths.take(array.indices)).as_py() or 0)
    if pa.types.is_nested(array.type):
        return sum(map(_texts, _within(array)))
    try:
        return int(pc.sum(pc.binary_length(array)).as_py() or 0)
    except pa.ArrowNotImplementedError:
        return 0  # numbers, which are counted


def _within(array: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_map(array.type):
        yield from (array.keys, array.items)
    elif pa.types.is_struct(array.type):
        yield from (array.field(i) for i in range(array.type.num_fields))
    else:
        yield array.flatten()
