"""The pages of a Parquet file as their headers declare them, without unpacking any.

What a footer says of sizes and encodings is its author's word. A reader goes by the header of
each page, which is a Thrift struct in the compact protocol (parquet-format, `PageHeader`). It is
read here more strictly than readers do, so that both see the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
#: Field of a header that describes the page, and its field of the encoding, by type of page.
_ABOUT = {_DATA: (5, 2), _DICTIONARY: (7, 2), _DATA_V2: (8, 4)}
#: Bytes of a header: most take less than the first, none may take more than the last.
_FIRST, _LONGEST = 512, 16 << 20
_DEEPEST = 8
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class WrongPage(ValueError):
    """A header that is none."""


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


def pages(file: BinaryIO, chunk: Any) -> Iterator[Page]:
    """Pages of a column chunk (`pyarrow.parquet.ColumnChunkMetaData`) in file order.

    Raises:
        WrongPage: a header cannot be read.
    """
    at, left, seen = chunk.data_page_offset, chunk.total_compressed_size, 0
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    if min(at, left, chunk.num_values) < 0:
        raise WrongPage("a column that begins before its file")
    while left > 0 and seen < chunk.num_values:
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
            found = replace(found, levels=levels, compressed=about.get(7, (_TRUE, True))[1] is True)
        seen += 0 if found.dictionary else found.values
        yield found


def _whole(fields: dict[int, tuple[int, Any]], number: int) -> int:
    kind, value = fields.get(number, (0, None))
    if kind != _I32 or value < 0:
        raise WrongPage(f"a page header whose field {number} is no count")
    return int(value)


def _header(file: BinaryIO, at: int, left: int) -> tuple[dict[int, tuple[int, Any]], int]:
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


class Compact:
    """Structs of Thrift's compact protocol: field → (type, value).

    Its whole numbers are those of Parquet's deltas too. IndexError where the bytes end early.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, depth: int = 0) -> dict[int, tuple[int, Any]]:
        if depth > _DEEPEST:
            raise WrongPage("a page header nested too deeply")
        fields: dict[int, tuple[int, Any]] = {}
        last = 0
        while first := self._byte():
            kind, step = first & 15, first >> 4
            number = last + step if step else self.signed()
            if number <= last:  # readers differ in which of two they take
                raise WrongPage("a page header whose fields are not in order")
            fields[number], last = (kind, self._value(kind, depth)), number
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in (_I16, _I32, _I64):
            return self.signed()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_BYTE, _DOUBLE, _BINARY):
            return self.skip({_BYTE: 1, _DOUBLE: 8}.get(kind) or self.unsigned())
        raise WrongPage(f"a page header with a value of kind {kind}")  # lists: there are none

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.data):
            raise IndexError

    def bytes(self, size: int) -> bytes:
        self.skip(size)
        return self.data[self.at - size : self.at]

    def unsigned(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found
            if shift > 63:
                raise WrongPage("a number without an end")

    def signed(self) -> int:
        found = self.unsigned()
        return (found >> 1) ^ -(found & 1)
