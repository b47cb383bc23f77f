"""Local files as rows: Parquet, CSV and JSONL, plain or gzipped."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import hashlib
import io
import json
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import yaml

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.untrusted import (
    MAX_RATIO,
    damaged,
    parquet_rows,
    regular,
    too_large,
)
from routeyard.schemas.errors import RecipeError

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
    path: Path,
    declared: str | None = None,
    *,
    short_rows: bool = False,
    spoilt: list[int] | None = None,
) -> Iterator[dict[str, Any]]:
    """Rows of one file as dictionaries, in file order.

    Args:
        short_rows: Take rows of a CSV that end early, with None for what they lack.
        spoilt: Takes the numbers of JSON lines that hold no object; without it they are an error.

    Raises:
        SourceError: the file is damaged; says at which line or byte.
    """
    kind = format_of(path, declared)
    readers: dict[str, Callable[[Path], Iterator[dict[str, Any]]]] = {
        "parquet": parquet_rows,
        "csv": partial(_csv, short_rows=short_rows),
        "jsonl": partial(_jsonl, spoilt=spoilt),
    }
    try:
        yield from readers[kind](path)
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
        result = super().read1(size)
        self._unfolded += len(result)
        if self._unfolded > self._most:
            raise too_large(self._path, f"unfolds to more than {self._most:,} bytes")
        return result


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

    A spreadsheet may name another sign in a line before the header: `sep=;`.

    Args:
        path: where errors say that it is.
        short_rows: Take rows that end early, with None for what they lack.

    Raises:
        SourceError: a row has more fields than the header, or fewer; says the line.
    """
    # Model outputs are longer than the module's default limit of 131,072 characters.
    csv.field_size_limit(1 << 30)
    # The sign that is most often between the names of the header; of equals the comma.
    first = next(_lines(stream, path), "")
    said = re.fullmatch(r"sep=(.)\s*", first)
    sign = said[1] if said else max((",", "\t", ";"), key=first.count)
    begin, before = (stream.tell(), 1) if said else (0, 0)
    plain = sign == "\t" and not _encloses(stream, path)
    stream.seek(begin)
    reader = csv.DictReader(
        _lines(stream, path), strict=True, delimiter=sign,
        quoting=csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL,
    )  # fmt: skip
    names = list(reader.fieldnames or ())
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SourceError(
            f"the header names {twice[0]!r} several times: one would hide the other",
            where=f"{path}:1",
            next_step="give each column its own name"
            if twice[0]
            else "the first line names the columns: delete a title above it, and name each column",
        )
    for row in reader:
        if None in row or (None in row.values() and not short_rows):
            line = before + reader.line_num
            raise SourceError(
                f"line {line} has another number of fields than the header",
                where=f"{path}:{line}",
                next_step="mend the file, or quote the field that holds a separator",
            )
        yield dict(row)


def _encloses(stream: IO[str], path: Path) -> bool:
    """Whether quotes enclose fields between tabs; else they are signs like any other."""
    stream.seek(0)
    try:
        for _ in csv.reader(_lines(stream, path), strict=True, delimiter="\t"):
            pass
    except csv.Error:
        return False
    return True


def _jsonl(path: Path, spoilt: list[int] | None) -> Iterator[dict[str, Any]]:
    """Objects of JSON lines, or of one JSON document, however it is printed."""
    whole = _document(path)
    if whole is not None:
        yield from whole
        return
    with _open(path) as stream:
        yield from json_lines(_lines(stream, path), str(path), spoilt)


def json_lines(lines: Iterable[str], name: str, spoilt: list[int] | None = None) -> Iterator[Line]:
    """The objects of JSON lines; `name` is where errors say that they are.

    Args:
        spoilt: Takes the numbers of other lines, instead of an error.

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
            if spoilt is None:
                raise SourceError(f"line {number} is not JSON: {error}", **how) from error
            row = None
        if not isinstance(row, dict):
            if spoilt is not None:
                spoilt.append(number)
                continue
            raise SourceError(f"line {number} is not a JSON object", **how)
        result = Line(row)
        result.line = number
        yield result


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
    decoder, result, at = json.JSONDecoder(), [], 0
    try:
        while (at := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
            value, at = decoder.raw_decode(text, at)
            result.append(value)
    except (ValueError, RecursionError):
        return None  # read line by line, which says the line that is wrong
    if len(result) == 1:
        result = _listed(result[0])
    return result if all(isinstance(item, dict) for item in result) else None


def _listed(value: Any) -> list[Any]:
    """The rows of one JSON value: its own, or those of the only list that it holds."""
    if isinstance(value, list):
        return value
    inside = value.values() if isinstance(value, dict) else ()
    lists = [item for item in inside if isinstance(item, list) and item]
    if len(lists) == 1 and all(isinstance(part, dict) for part in lists[0]):
        return list(lists[0])
    return [value]


# `$NAME` in a recipe's paths and addresses: read from the environment, in one way, never shown.
#
# What a variable expands to may be a secret; errors name the variable and the text
# as the recipe has it.

_NAME = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def names(text: str) -> list[str]:
    """Variables that the text refers to, in order."""
    return [braced or plain for braced, plain in _NAME.findall(text)]


def missing(text: str) -> str | None:
    """The first variable of the text that is not set, or null."""
    return next((name for name in names(text) if name not in os.environ), None)


def expanded(text: str) -> str:
    """The text with its variables filled in; one that is not set stays as it is."""
    return _NAME.sub(lambda match: os.environ.get(match[1] or match[2], match[0]), text)


# Files that a recipe or an option names: variables, globs, and what to do where nothing is.

#: What the error says when the folder of recorded outputs is not set.
DATA_HINT = (
    "set ROUTEYARD_DATA to a folder of recorded outputs: public repositories hold them "
    "(WildEval/ZeroEval, TIGER-AI-Lab/MMLU-Pro, lm-sys/RouteLLM); each recipe's header says "
    "which files it reads and which columns they must have"
)


def expand(path: str, *, base: Path, where: str) -> list[Path]:
    """Files that `path` names: `$NAME` is read from the environment, globs are sorted.

    Args:
        where: What names the path: a place of the recipe, or the option (`--file`).

    Raises:
        SourceError: an environment variable is unset or no file matches.
    """
    name = missing(path)
    if name is not None:
        hint = DATA_HINT if name == "ROUTEYARD_DATA" else f"set the environment variable {name}"
        raise SourceError(
            f"the path {path!r} needs the environment variable {name}, which is not set",
            where=where,
            next_step=hint,
        )
    filled = os.path.expanduser(expanded(path))
    full = filled if os.path.isabs(filled) else str(base / filled)
    results = [full] if os.path.exists(full) else sorted(glob.glob(full, recursive=True))
    # `**` goes round a link that leads back; each file is one, by the first of its names.
    ways: dict[str, Path] = {}
    for name in filter(os.path.isfile, results):
        ways.setdefault(os.path.realpath(name), Path(name))
    files = list(ways.values())
    if not files:
        # What a variable expands to is not shown.
        shown = path if names(path) else full
        option = where if where.startswith("-") else ""
        if os.path.isdir(full):
            some = f"{path.rstrip('/')}/*{_ending(full)}"
            raise SourceError(
                f"there is no file {shown}: it is a folder",
                where=where,
                next_step="name its files, e.g. " + (f"{option} '{some}'" if option else some),
            )
        raise SourceError(
            f"there is no file {shown}",
            where=where,
            next_step=f"correct {option or 'the path in the recipe'}, or put the file there",
        )
    for file in files:
        _readable(file, path if names(path) else str(file), where)
    return files


def _ending(folder: str) -> str:
    """How most files of a folder end, of those that are read; else as a table would."""
    counts = Counter(
        ends(path) + (".gz" if path.suffix == ".gz" else "")
        for path in map(Path, glob.glob(os.path.join(glob.escape(folder), "*")))
        if ends(path) in FORMATS
    )
    return max(counts, key=counts.__getitem__, default=".parquet")


def _readable(file: Path, shown: str, where: str) -> None:
    """Stop at a file that is there and cannot be read."""
    try:
        with file.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        raise SourceError(
            f"the file {shown} cannot be read: {error.strerror}",
            where=where,
            next_step="allow this user to read it, or name another file",
        ) from error


# YAML from strangers: plain values, each key once, nothing that grows or nests without end.

#: Levels of lists and mappings in one another.
DEEPEST = 60
#: The parser in C takes a tenth of the time; not every build of the library has it.
if TYPE_CHECKING:
    from yaml import SafeLoader as _Parser
else:
    _Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):
    """Safe, and a key that occurs twice in one mapping is an error: which one counts?"""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} occurs twice", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep)


def read_text(text: str, *, where: str) -> Any:
    """The one document in `text`.

    Raises:
        RecipeError: not YAML; an alias, a tag that makes objects, a key that occurs
            twice, a number that is not finite, or more than `DEEPEST` levels.
    """
    try:
        _flat(text, where)
        content = yaml.load(text, Loader=_Loader)  # noqa: S506  a safe one
        _finite(content, (), where)
    except (yaml.YAMLError, RecursionError) as error:
        raise RecipeError(
            f"the file is not valid YAML: {error}", where=where, next_step="correct the syntax"
        ) from error
    except (ValueError, KeyError, AttributeError, TypeError, OverflowError) as error:
        # What the library's own makers of numbers, truths and dates raise.
        raise RecipeError(
            f"the file holds a value that is not what it says it is: {error}",
            where=where,
            next_step="write dates as YYYY-MM-DD and texts in quotes",
        ) from error
    return content


def _flat(text: str, where: str) -> None:
    """Refuse aliases and nesting while the text is parsed, before anything is made of it."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_Parser):
            if isinstance(event, yaml.AliasEvent):
                raise RecipeError(
                    "YAML aliases (*name) are not read",
                    where=where,
                    next_step="write the value out where it is used",
                )
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise _too_deep(where, event.start_mark)
    except yaml.MarkedYAMLError as error:
        # Newer builds of the parser have a limit too, and read ahead up to it.
        if "nesting depth" in str(error):
            raise _too_deep(where, error.problem_mark) from error
        raise


def _too_deep(where: str, mark: Any) -> RecipeError:
    return RecipeError(
        f"lists and mappings are nested more than {DEEPEST} levels deep",
        where=f"{where}:{mark.line + 1}",
        next_step="write it flatter",
    )


def _finite(value: Any, place: tuple[str, ...], where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise RecipeError(
            f"{value} is no number to count with",
            where=f"{where}: {'.'.join(place)}",
            next_step="give a finite number, or leave the key out where there is no limit",
        )
    if isinstance(value, dict):
        for key, item in value.items():
            _finite(item, (*place, str(key)), where)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _finite(item, (*place, str(number)), where)
