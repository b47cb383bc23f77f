"""Documents of a stranger's folder, file or archive: JSON values, and tables of CSV or Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.importers.archive import members
from routeyard.pipelines.ingest.importers.reading import inside, parse_json
from routeyard.pipelines.ingest.results.columns import plain_columns, point_for_comma
from routeyard.pipelines.ingest.results.values import ReadingNote
from routeyard.pipelines.io import files
from routeyard.pipelines.io.untrusted import MAX_RATIO, reading, regular, too_large

#: Ends of names that are read; `.gz` may follow those of text.
ENDINGS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".yaml", ".yml", ".zip")
#: Workbooks and databases, and what to do with them.
_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers", ".sqlite", ".sqlite3", ".db", ".duckdb")
_OTHERWISE = "save each sheet or table as CSV or Parquet, in one folder"
#: Files of one folder, and bytes of all of them.
MAX_FILES, MAX_TOTAL = 100_000, 20_000_000_000
#: A YAML list of a leaderboard is short; the parser is slow, and what aliases unfold to is not.
_LONGEST_YAML = 5_000_000


@dataclass(frozen=True, slots=True)
class Document:
    """One file, or one member of an archive.

    Attributes:
        place: Its path in parts, without the ending: below the folder that was named, and the last
            parts that lead to that.
        name: Its path as a person finds it.
        rows: A table, or the objects of JSON lines; None for a JSON value.
        value: The JSON value.
        notes: What a person should know of how it was read.
    """

    place: tuple[str, ...]
    name: str
    rows: pa.Table | list[dict[str, Any]] | None = None
    value: Any = None
    notes: tuple[ReadingNote, ...] = ()


def files_of(path: Path) -> tuple[list[Path], list[str]]:
    """The files at a path that are read, in order of name, and the names of the others.

    Raises:
        SourceError: nothing is there, there are too many files, or a link leads out.
    """
    if not path.exists():
        raise SourceError(
            f"there is nothing at {path}", where=str(path), next_step="name a file or a folder"
        )
    if path.is_file() and files.ends(path).lower() in _SHEETS:
        raise SourceError(
            "workbooks and databases are not read", where=str(path), next_step=_OTHERWISE
        )
    if path.is_file():
        return [path], []
    found, others, total = [], [], 0
    for one in sorted(path.rglob("*")):
        if any(part.startswith(".") for part in one.relative_to(path).parts) or not one.is_file():
            continue
        if files.ends(one).lower() not in (*ENDINGS, ".eval"):
            others.append(one.relative_to(path).as_posix())
            continue
        inside(one, path)
        found.append(one)
        total += one.stat().st_size
        if len(found) > MAX_FILES or total > MAX_TOTAL:
            raise too_large(path, f"holds more than {MAX_FILES:,} files or {MAX_TOTAL:,} bytes")
    if not found:
        raise SourceError(
            "no file holds results",
            where=str(path),
            next_step=_OTHERWISE
            if any(files.ends(Path(one)).lower() in _SHEETS for one in others)
            else "files that are read: " + ", ".join(f"*{end}" for end in ENDINGS),
        )
    return found, others


def documents(paths: list[Path], root: Path) -> Iterator[Document]:
    """Documents of these files, in their order; those of an archive in the order of its names.

    Raises:
        SourceError: a file is damaged, or no text where text is expected.
        Unsafe: an archive unfolds to more than any dataset would.
    """
    base = root if root.is_dir() else root.parent
    # A file alone may have its model's name in the path that leads to it.
    above = base.resolve().parts[1:][-6 if root.is_file() else -1 :]
    for path in paths:
        name = path.relative_to(base).as_posix()
        if path.suffix == ".zip":
            for ending in (".json", ".jsonl", ".csv", ".tsv"):
                for member, data in members(path, ending):
                    place, where = (*above, *_place(f"{name}/{member}")), f"{name}:{member}"
                    if ending in (".csv", ".tsv"):
                        with io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="") as stream:
                            found = files.csv_rows(stream, Path(where), short_rows=True)
                            yield _table(found, place, where)
                    else:
                        yield _parsed(data, place, where)
        else:
            yield _document(path, (*above, *_place(name)), name)


def _place(name: str) -> tuple[str, ...]:
    *folders, last = name.split("/")
    for end in (".gz", *ENDINGS):
        last = last.removesuffix(end)
    return (*folders, last)


def _document(path: Path, place: tuple[str, ...], name: str) -> Document:
    ending = files.ends(path).lower()
    if ending == ".parquet":
        return Document(place, name, rows=_parquet(path))
    if ending in (".csv", ".tsv"):
        return _table(files.rows(path, "csv", short_rows=True), place, name)
    if ending in (".yaml", ".yml"):
        return Document(place, name, value=_yaml(path))
    if ending == ".json" and path.suffix == ".gz":
        return _parsed(files.json_text(path).encode(), place, name)
    if ending == ".json":
        regular(path)
        if path.stat().st_size > files.LONGEST_DOCUMENT:
            raise SourceError("the file is too large for one JSON document", where=str(path))
        return _parsed(path.read_bytes(), place, name)
    return Document(place, name, rows=list(files.rows(path, "jsonl")))


def _parsed(data: bytes, place: tuple[str, ...], name: str) -> Document:
    """A document of bytes: one JSON value, else JSON lines."""
    try:
        return Document(place, name, value=parse_json(data, name))
    except SourceError:
        lines = [line for line in data.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        rows = [parse_json(line, f"{name}:{n}") for n, line in enumerate(lines, start=1)]
        if not all(isinstance(row, dict) for row in rows):
            raise
        return Document(place, name, rows=rows)


#: Rows with lists of records that are unfolded.
_MOST_NESTED = 200_000


def _of_answers(field: pa.Field) -> bool:
    """Whether a column holds lists of records, which are no turns of a conversation."""
    if not (pa.types.is_list(field.type) or pa.types.is_large_list(field.type)):
        return False
    inner = field.type.value_type
    named = {one.name for one in inner} if pa.types.is_struct(inner) else set()
    return len(named) >= 2 and not named & {"role", "from", "content"}


def _parquet(path: Path) -> pa.Table | list[dict[str, Any]]:
    from routeyard.pipelines.isolation.parquet_file import batches

    regular(path)
    with (
        reading(path, MAX_RATIO) as (worker, most, limits),
        closing(worker.stream(batches, str(path.absolute()), most, limits=limits)) as stream,
    ):
        found = list(stream)
    if not found:
        return pa.table({})
    table = pa.Table.from_batches(found)
    if table.num_rows <= _MOST_NESTED and any(map(_of_answers, table.schema)):
        return list(table.to_pylist())
    return plain_columns(table)


def _table(found: Iterator[dict[str, str | None]], place: tuple[str, ...], name: str) -> Document:
    """Rows of a CSV; all columns are texts: what they hold is decided with all of one in view."""
    columns: dict[str, list[str | None]] = {}
    short: list[int] = []
    for number, row in enumerate(found, start=1):
        for key, value in row.items():
            columns.setdefault(key or "unnamed", []).append(value)
        if None in row.values():
            short.append(number)
    table = pa.table({key: point_for_comma(pa.array(values, pa.string()))
                      for key, values in columns.items()})  # fmt: skip
    if not short:
        return Document(place, name, rows=table)
    says = f"{len(short):,} rows of {name} end before the last column: what they lack is unknown"
    at = tuple(f"{name}, row {number}" for number in short[:3])
    return Document(place, name, table, notes=(ReadingNote("status", says, len(short), at, name),))


def _yaml(path: Path) -> Any:
    regular(path)
    if path.stat().st_size > _LONGEST_YAML:
        return None
    try:
        text = path.read_text(encoding="utf-8")
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.CSafeLoader)):
            return None
        return yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError):
        return None
