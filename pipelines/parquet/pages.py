"""The pages of a Parquet file as their headers declare them, without unpacking any.

What a footer says of sizes and encodings is its author's word. A reader goes by the header of
each page (parquet-format, `PageHeader`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from pipelines.parquet.footer import Chunk
from pipelines.parquet.thrift import I32, TRUE, Compact, Fields, WrongPage

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
#: Field of a header that describes the page, and its field of the encoding, by type of page.
_ABOUT = {_DATA: (5, 2), _DICTIONARY: (7, 2), _DATA_V2: (8, 4)}
#: Bytes of a header: most take less than the first, none may take more than the last.
_FIRST, _LONGEST = 512, 16 << 20


@dataclass(frozen=True)
class Page:
    """A page of values, or the dictionary that others point into.

    Attributes:
        values: How many there are, nulls included.
        size: Bytes when it is unpacked.
        encoding: Number of parquet-format's `Encoding`.
        at: Where in the file its bytes begin.
        packed: Bytes there.
        levels: Bytes of levels before what is compressed; None where they are compressed too.
        compressed: Whether its column's codec was used.
    """

    dictionary: bool
    values: int
    size: int
    encoding: int
    at: int
    packed: int
    levels: int | None = None
    compressed: bool = True


def pages(file: BinaryIO, chunk: Chunk) -> Iterator[Page]:
    """Pages of a column chunk in file order.

    Raises:
        WrongPage: a header cannot be read.
    """
    at, left, seen = chunk.first, chunk.packed, 0
    while left > 0 and seen < chunk.values:
        header, length = _header(file, at, left)
        kind, size, packed = (_whole(header, field) for field in (1, 2, 3))
        at, left = at + length + packed, left - length - packed
        if kind not in _ABOUT:
            continue  # an index, which holds no values
        field, encoding = _ABOUT[kind]
        about = header.get(field, (0, None))[1]
        if not isinstance(about, dict):
            raise WrongPage("a page that says nothing of its values")
        found = Page(
            kind == _DICTIONARY,
            _whole(about, 1),
            size,
            _whole(about, encoding),
            at - packed,
            packed,
        )
        if kind == _DATA_V2:
            levels = _whole(about, 5) + _whole(about, 6)
            found = replace(found, levels=levels, compressed=about.get(7, (TRUE, True))[1] is True)
        seen += 0 if found.dictionary else found.values
        yield found


def _whole(fields: Fields, number: int) -> int:
    kind, value = fields.get(number, (0, None))
    if kind != I32 or value < 0:
        raise WrongPage(f"a page header whose field {number} is no count")
    return int(value)


def _header(file: BinaryIO, at: int, left: int) -> tuple[Fields, int]:
    """The fields of the header at a place of the file, and its length."""
    size = _FIRST
    while True:
        file.seek(at)
        reader = Compact(file.read(min(size, left)))
        try:
            return reader.struct(), reader.at
        except IndexError:
            if size >= min(left, _LONGEST):
                raise WrongPage("a page header without an end") from None
            size *= 32
