"""What the footer of a Parquet file says of its row groups and columns.

pyarrow gives it too, and ends the process where a footer contradicts itself: what it raises while
it looks at a column chunk is caught by nobody. So strangers' footers are read here
(parquet-format, `FileMetaData`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.io.files import damaged
from pipelines.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, Compact, Fields, WrongPage

#: Physical types, by their numbers.
TYPES = (
    "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY",
)  # fmt: skip
#: An encoding: texts of a chunk stand in a dictionary.
RLE_DICTIONARY = 8
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4")
_END = 8


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a chunk says of its values; None where it says nothing.

    Attributes:
        low: Smallest value as PLAIN writes it, and `high`, the largest.
        old: Both as writers of old had them, whose order is that of signed numbers.
    """

    low: bytes | None
    high: bytes | None
    old: tuple[bytes | None, bytes | None]
    nulls: int | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column of a row group.

    Attributes:
        kind: Its place in `TYPES`.
        name: Path within the schema, with dots.
        encodings: Numbers of parquet-format's `Encoding`.
        values: How many there are, nulls included.
        first: Where in the file its first page begins; its pages take `packed` bytes.
        skips: Whether it has a Bloom filter or an index of pages, by which readers skip some.
    """

    kind: int
    name: str
    encodings: frozenset[int]
    codec: str
    values: int
    packed: int
    first: int
    statistics: Statistics
    skips: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A row group; `size` counts its bytes when it is unpacked."""

    rows: int
    size: int
    chunks: tuple[Chunk, ...]


def footer(path: Path) -> Iterator[Group]:
    """The row groups of a file, in its order; each is read when it is asked for.

    Raises:
        WrongPage: the footer cannot be read. OSError: nor can the file.
    """
    with path.open("rb") as file:
        whole = file.seek(0, 2)
        file.seek(max(0, whole - _END))
        end = file.read()
        size = int.from_bytes(end[:4], "little")
        if end[4:] != b"PAR1" or size > whole - _END - 4:
            raise WrongPage("no footer, or an encrypted one")
        file.seek(whole - _END - size)
        reader = Compact(file.read(size))
    try:
        for number, kind in reader.fields():
            if number != 4:
                reader.value(kind)
            elif kind == LIST:
                count, of = reader.list_of()
                # One by one: what is read takes many times the room of what is kept.
                for _ in range(count if of == STRUCT else 0):
                    yield _group(reader.struct(1))
    except IndexError:
        raise WrongPage("a footer without an end") from None


def groups_of(path: Path) -> Iterator[Group]:
    """The same of a file that was written by us, or has been looked at.

    Raises:
        SourceError: the footer cannot be read.
    """
    try:
        yield from footer(path)
    except (WrongPage, OSError) as error:
        raise damaged(path, error) from error


def _group(fields: Fields) -> Group:
    chunks = tuple(_chunk(one) for one in _need(fields, 1, LIST))
    return Group(_count(fields, 3), _count(fields, 2), chunks)


def _chunk(outer: Any) -> Chunk:
    if not isinstance(outer, dict) or outer.keys() & {8, 9} or outer.get(1, (0, b""))[1] != b"":
        raise WrongPage("a column that is encrypted, or lies in another file")
    about = _need(outer, 3, STRUCT)
    kind, codec = _need(about, 1, I32), _need(about, 4, I32)
    if not 0 <= kind < len(TYPES) or not 0 <= codec < len(_CODECS):
        raise WrongPage("a column of an unknown type or codec")
    encodings, names = _need(about, 2, LIST), _need(about, 3, LIST)
    if not all(isinstance(n, bytes) for n in names) or not all(type(e) is int for e in encodings):
        raise WrongPage("a column whose names or encodings are none")
    first, before = _count(about, 9), _count(about, 11) if 11 in about else 0
    said = about.get(12, (0, None))[1]
    return Chunk(
        kind,
        ".".join(name.decode("utf-8", "replace") for name in names),
        frozenset(encodings),
        _CODECS[codec],
        _count(about, 5),
        _count(about, 7),
        before if 0 < before < first else first,
        _statistics(said if isinstance(said, dict) else {}),
        bool(outer.keys() & {4, 6} or about.keys() & {14}),
    )


def _statistics(fields: Fields) -> Statistics:
    old_high, old_low, high, low = (fields.get(i, (BINARY, None)) for i in (1, 2, 5, 6))
    if {one[0] for one in (old_high, old_low, high, low)} != {BINARY}:
        raise WrongPage("statistics that are none")
    nulls = fields.get(3, (I64, None))
    return Statistics(
        low[1], high[1], (old_low[1], old_high[1]), nulls[1] if nulls[0] == I64 else None
    )


def _need(fields: Fields, number: int, kind: int) -> Any:
    found, value = fields.get(number, (0, None))
    if found != kind:
        raise WrongPage(f"a footer without field {number} of a column")
    return value


def _count(fields: Fields, number: int) -> int:
    value: int = _need(fields, number, I64)
    if value < 0:
        raise WrongPage(f"a footer whose field {number} is no count")
    return value
