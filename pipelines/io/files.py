"""Local files as rows: Parquet, CSV and JSONL, plain or gzipped."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.io.untrusted import MAX_RATIO, damaged, parquet_rows, regular, too_large

_SPACE = re.compile(r"\s*")
#: How a file's name ends → how it is read; `.gz` may follow.
FORMATS = {
    ".parquet": "parquet", ".csv": "csv", ".tsv": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
}  # fmt: skip
#: Signs of one line, and of one JSON document: they are read into memory whole.
LONGEST_LINE, LONGEST_DOCUMENT = 1 << 27, 2_000_000_000
#: A gzip file may unfold to `MAX_RATIO` times its size, and to so many bytes in any case.
_ANYWAY = 10_000_000


class Line(dict[str, Any]):
    """A row that knows its line, counted from 1, and, among several files, file and place."""

    __slots__ = ("line", "place")
    line: int
    place: str


def ends(path: Path) -> str:
    """How a file's name ends, before `.gz`."""
    return next((end for end in reversed(path.suffixes) if end != ".gz"), "")


def sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def format_of(path: Path, declared: str | None) -> str:
    """`parquet`, `csv` or `jsonl`, from the recipe or the file's name."""
    if declared:
        return declared
    ending = ends(path)
    if ending not in FORMATS:
        raise SourceError(
            f"the format of {path.name} is not clear from its name",
            where=str(path),
            next_step="set 'format: parquet | csv | jsonl' in the recipe",
        )
    return FORMATS[ending]


def rows(
    path: Path, declared: str | None = None, *, short_rows: bool = False
) -> Iterator[dict[str, Any]]:
    """Rows of one file as dictionaries, in file order.

    Args:
        short_rows: Take rows of a CSV that end early, with None for what they lack.

    Raises:
        SourceError: the file is damaged; says at which line or byte.
    """
    kind = format_of(path, declared)
    reader = {"parquet": parquet_rows, "csv": _csv, "jsonl": _jsonl}[kind]
    try:
        yield from _csv(path, short_rows=True) if kind == "csv" and short_rows else reader(path)
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{path.name} cannot be read: it is neither UTF-8 nor UTF-16 with a mark ({error})",
            where=str(path),
            next_step=f"write it as UTF-8: iconv -f LATIN1 -t UTF-8 {path.name} (or -f CP1252, …)",
        ) from error
    except (OSError, EOFError, csv.Error, zlib.error) as error:
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile) and error.errno:
            raise
        raise damaged(path, error) from error
    except MemoryError as error:
        raise too_large(path, "needs more memory than there is") from error


class _Gzip(gzip.GzipFile):
    """A gzip file that stops where it unfolds to more than text would."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._path, self._unfolded = path, 0
        self._most = max(_ANYWAY, path.stat().st_size * MAX_RATIO)

    def read1(self, size: int = -1) -> bytes:
        found = super().read1(size)
        self._unfolded += len(found)
        if self._unfolded > self._most:
            raise too_large(self._path, f"unfolds to more than {self._most:,} bytes")
        return found


def _open(path: Path) -> IO[str]:
    regular(path)
    if path.suffix == ".gz":
        packed = _Gzip(path)
        return io.TextIOWrapper(packed, encoding=_encoding(packed.peek(2)), newline="")
    with path.open("rb") as stream:
        encoding = _encoding(stream.read(2))
    return path.open(encoding=encoding, newline="")


def _encoding(start: bytes) -> str:
    """UTF-16 where a text starts with its mark, as spreadsheets write it; else UTF-8."""
    return "utf-16" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def _lines(stream: IO[str], path: Path) -> Iterator[str]:
    """Lines of a text, none of them longer than memory should hold."""
    while line := stream.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise too_large(path, f"has a line of {LONGEST_LINE:,} signs or more")
        yield line


def _csv(path: Path, *, short_rows: bool = False) -> Iterator[dict[str, Any]]:
    with _open(path) as stream:
        yield from csv_rows(stream, path, short_rows=short_rows)


def csv_rows(stream: IO[str], path: Path, *, short_rows: bool = False) -> Iterator[dict[str, Any]]:
    """Rows of an open CSV, with a comma, tab or semicolon between its fields.

    Args:
        path: where errors say that it is.
        short_rows: Take rows that end early, with None for what they lack.

    Raises:
        SourceError: a row has more fields than the header, or fewer; says the line.
    """
    # Model outputs are longer than the module's default limit of 131,072 characters.
    csv.field_size_limit(1 << 30)
    # The sign that is most often between the names of the header; of equals the comma.
    sign = max((",", "\t", ";"), key=next(_lines(stream, path), "").count)
    stream.seek(0)
    reader = csv.DictReader(_lines(stream, path), strict=True, delimiter=sign)
    names = list(reader.fieldnames or ())
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SourceError(
            f"the header names {twice[0]!r} several times: one would hide the other",
            where=f"{path}:1",
            next_step="give each column its own name",
        )
    for row in reader:
        if None in row or (None in row.values() and not short_rows):
            raise SourceError(
                f"line {reader.line_num} has another number of fields than the header",
                where=f"{path}:{reader.line_num}",
                next_step="mend the file, or quote the field that holds a separator",
            )
        yield dict(row)


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of JSON lines, or of one JSON document, however it is printed."""
    whole = _document(path)
    if whole is not None:
        yield from whole
        return
    with _open(path) as stream:
        yield from json_lines(_lines(stream, path), str(path))


def json_lines(lines: Iterable[str], name: str) -> Iterator[Line]:
    """The objects of JSON lines; `name` is where errors say that they are.

    Raises:
        SourceError: a line is not a JSON object; says which.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        how = {
            "where": f"{name}:{number}",
            "next_step": "mend the line; one JSON object per line is expected",
        }
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SourceError(f"line {number} is not JSON: {error}", **how) from error
        if not isinstance(row, dict):
            raise SourceError(f"line {number} is not a JSON object", **how)
        found = Line(row)
        found.line = number
        yield found


def json_text(path: Path) -> str:
    """The text of one JSON document, also of a gzipped one.

    Raises:
        SourceError: the file is damaged, or longer than `LONGEST_DOCUMENT`.
    """
    try:
        with _open(path) as stream:
            return _whole(stream, path)
    except (EOFError, UnicodeDecodeError, gzip.BadGzipFile, zlib.error) as error:
        raise damaged(path, error) from error


def _whole(stream: IO[str], path: Path) -> str:
    parts, size = [], 0
    while part := stream.read(1 << 24):
        parts.append(part)
        size += len(part)
        if size > LONGEST_DOCUMENT:
            raise too_large(path, f"has more than {LONGEST_DOCUMENT:,} signs in one JSON document")
    return "".join(parts)


def _document(path: Path) -> list[dict[str, Any]] | None:
    """Objects of a file that is a JSON list, a pretty-printed object, or several of them.

    An object that holds one list of objects beside plain values (`{"data": […]}`) counts as that
    list. None where the first line is a whole object: JSON lines.
    """
    with _open(path) as stream:
        first = next((line for line in _lines(stream, path) if line.strip()), "").strip()
    if not first.startswith("[") and first not in ("{", "{}") and not first.endswith(","):
        return None
    with _open(path) as stream:
        text = _whole(stream, path)
    decoder, found, at = json.JSONDecoder(), [], 0
    try:
        while (at := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
            value, at = decoder.raw_decode(text, at)
            found.append(value)
    except (ValueError, RecursionError):
        return None  # read line by line, which says the line that is wrong
    if len(found) == 1:
        found = _listed(found[0])
    return found if all(isinstance(one, dict) for one in found) else None


def _listed(value: Any) -> list[Any]:
    """The rows of one JSON value: its own, or those of the only list that it holds."""
    if isinstance(value, list):
        return value
    inside = value.values() if isinstance(value, dict) else ()
    lists = [one for one in inside if isinstance(one, list) and one]
    if len(lists) == 1 and all(isinstance(one, dict) for one in lists[0]):
        return list(lists[0])
    return [value]
