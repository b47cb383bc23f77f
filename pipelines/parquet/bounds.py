"""Whether a Parquet file unfolds to more than a person would have written.

One long text that a dictionary holds once and a million rows point to takes some kilobytes, and
gigabytes when it is read; so do rows that are all alike, and zeros that were packed. What a file
comes to is added up from the headers of its pages and the lengths that texts are written with;
only where these leave it open are texts read, as positions in their dictionaries, and added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.io.files import MAX_RATIO, damaged, regular, too_large
from pipelines.parquet.deltas import LENGTHS, TEXTS, length
from pipelines.parquet.footer import RLE_DICTIONARY, TYPES, Group, footer
from pipelines.parquet.pages import Page, pages
from pipelines.parquet.thrift import WrongPage

#: A table of a release may unfold to so many times its size: of labels most columns say the same
#: in each row, and millions of them reach some hundreds. Nothing else that is written does.
RELEASED = 5_000
#: So many bytes are read of any file.
ANYWAY = 500_000_000
_PLAIN_DICTIONARY = 2
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
    except (pa.ArrowException, WrongPage, UnicodeDecodeError, OSError) as error:
        raise damaged(path, error) from error
    if not fits:
        raise too_large(path, f"unfolds to more than {most:,} bytes")
    return path


def _fits(path: Path, file: pq.ParquetFile, most: int) -> bool:
    groups, count = list(footer(path)), len(file.schema)
    rows = max(file.metadata.num_rows, sum(group.rows for group in groups))
    if rows and not count:
        return False
    at_least: int = rows
    columns = [_Column(file.schema.column(number), number) for number in range(count)]
    known = [(column.schema.physical_type, column.schema.path) for column in columns]
    if any([(TYPES[c.kind], c.name) for c in group.chunks] != known for group in groups):
        raise WrongPage("row groups whose columns are not those of the schema")
    with path.open("rb") as stream:
        for number, column in enumerate(columns):
            for group in groups:
                column.add(pages(stream, group.chunks[number]))
                if at_least + column.least > most:
                    return False
            at_least += column.least
        # No page is larger than the file may be, so that each can be unpacked.
        for column in columns:
            if column.deltas:
                column.add_deltas(stream, groups)
                at_least += column.unfolded
                if at_least > most:
                    return False
    if at_least + sum(column.more for column in columns) <= most:
        return True
    return at_least + sum(_measured(path, column) for column in columns if column.more) <= most


class _Column:
    """What the pages of a column come to.

    Attributes:
        least: Bytes that it takes, whatever the texts are.
        unfolded: Bytes of its texts that may repeat parts of each other.
        more: Bytes that its other texts add at most.
        longest: Bytes of its longest page.
        deltas: Whether it has pages that say the lengths of their texts.
    """

    def __init__(self, schema: pq.ColumnSchema, number: int) -> None:
        self.schema, self.number = schema, number
        self.least = self.unfolded = self.more = self.longest = 0
        self.deltas = False

    def add(self, found: Iterator[Page]) -> None:
        kind, held = self.schema.physical_type, 0
        width = self.schema.length if kind == "FIXED_LEN_BYTE_ARRAY" else _WIDTH.get(kind, 8)
        for page in found:
            self.longest = max(self.longest, page.size)
            self.least += page.size
            if page.dictionary:
                held = max(held, page.size)
                continue
            self.least += page.values * width
            self.deltas |= page.encoding in (LENGTHS, TEXTS)
            if kind == "BYTE_ARRAY" and page.encoding in (_PLAIN_DICTIONARY, RLE_DICTIONARY):
                self.more += page.values * held

    def add_deltas(self, stream: BinaryIO, groups: Sequence[Group]) -> None:
        levels = bool(self.schema.max_repetition_level) + bool(self.schema.max_definition_level)
        texts = self.schema.physical_type == "BYTE_ARRAY"
        for group in groups:
            chunk = group.chunks[self.number]
            for page in pages(stream, chunk):
                if page.encoding in (LENGTHS, TEXTS) and not page.dictionary:
                    size = length(stream, page, chunk.codec, levels)
                    # What others hold stands in the page, and is counted with it.
                    self.unfolded += size if texts and page.encoding == TEXTS else 0


def _measured(path: Path, column: _Column) -> int:
    """Bytes of the texts that the positions of a column point to."""
    if column.deltas and column.schema.max_repetition_level:
        return column.more  # a row could hold any number of those that repeat each other
    total, name = 0, column.schema.path
    # A text that repeats the last one cannot be had as a position.
    rows = max(1, _TOGETHER // column.longest) if column.deltas else _ROWS
    with pq.ParquetFile(path, read_dictionary=None if column.deltas else [name]) as file:
        for batch in file.iter_batches(rows, columns=[name]):
            total += sum(map(_texts, batch.columns))
    return total - column.unfolded


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
