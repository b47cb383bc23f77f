"""Sets of records inside JSON documents: lists of objects, maps of them, and ids per outcome.

Nothing here knows a benchmark. A list of objects is a set; so is an object whose values are
alike, with its keys as a column; the values around a set are true of each of its records.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.untrusted import MAX_RATIO, reading, regular, too_large
from routeyard.pipelines.ingest.importers.reading import inside, members, parse_json, whole
from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.values import (
    LISTS,
    MAX_COLUMNS,
    ReadingNote,
    columns_of_lists,
    named_values,
    of_objects,
    one_spelling,
    plain_columns,
    plain_map,
    plain_maps,
    plainly_named,
    point_for_comma,
    refusal,
    same_types,
    table_of,
    table_rows,
    told,
)

# Lists of ids per outcome (`resolved`, `error_ids`, …) as one record per id.

#: Names of figures that count all questions.
TOTAL = re.compile(r"^total(?:_(?:instances|tasks|questions|samples|problems))?$")
#: Names of figures that state the share of successes.
_STATED = re.compile(r"score|accuracy|acc|(?:resolved?|pass|success|solve)_?(?:rate|pct|percent)")


#: Lists that say more of an id overrule those that say less.
_RANK = ("ran", "other", "success", "failed", "unanswered", "empty", "timeout", "error")


def id_lists(value: Mapping[str, Any]) -> dict[str, list[str]]:
    """The lists of ids in an object; empty unless one of them says who succeeded."""
    lists = {
        key: [str(x) for x in item]
        for key, item in value.items()
        if isinstance(item, list) and all(isinstance(x, str | int) for x in item)
    }
    success = any(_kind(key) == "success" for key in lists)
    return lists if success and len(lists) >= 2 and any(lists.values()) else {}


def _kind(name: str) -> str:
    return next((kind for kind, said in LISTS.items() if said.search(name.lower())), "other")


def outcomes(
    value: Mapping[str, Any], lists: Mapping[str, list[str]], around: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """One record per id: the list that says most of it, and whether it succeeded by each of them.

    Ids are successes by the list that gives the share of successes that the file states; where it
    states none, by the shortest list that is named so.
    """
    kinds = {name: _kind(name) for name in lists}
    positive = {n: {*ids} for n, ids in lists.items() if kinds[n] in ("success", "other")}
    said: dict[str, str] = {}
    for name in sorted(lists, key=lambda n: _RANK.index(kinds[n])):
        said |= dict.fromkeys(lists[name], name)
    chosen = success_list(positive, {**around, **value}, len(said))
    stricter = [n for n, ids in positive.items() if ids and ids < positive[chosen]]
    outcome = {n: None if kind in _RANK[:3] else n.removesuffix("_ids").removesuffix("_instances")
               for n, kind in kinds.items()}  # fmt: skip
    return [
        {
            "instance_id": item,
            "succeeded": item in positive[chosen],
            "outcome": outcome[name],
            "listed_in": name,
            "only_successes": not {"failed", "ran"} & {*kinds.values()},
            "success_list": chosen,
            "stricter": ", ".join(stricter),
            **{f"in_list.{n}": item in ids for n, ids in positive.items() if n != chosen and ids},
        }
        for item, name in said.items()
    ]


def success_list(positive: Mapping[str, set[str]], about: Mapping[str, Any], listed: int) -> str:
    """Name of the list that counts as success."""
    numbers = [
        (str(k).lower().rpartition(".")[2], float(v))
        for k, v in about.items()
        if isinstance(v, int | float) and not isinstance(v, bool)
    ]
    total = next((v for k, v in numbers if TOTAL.search(k)), listed)
    # In percent, or as a fraction of 1.
    stated = next((v for k, v in numbers if _STATED.fullmatch(k) and 0 <= v <= 100), None)
    if stated is not None and total:
        percent = stated * 100 if stated <= 1 and not stated.is_integer() else stated
        near = [n for n, ids in positive.items() if abs(100 * len(ids) / total - percent) < 0.006]
        if near:
            return min(near, key=lambda n: (not positive[n], _kind(n) != "success", n))
    named = [name for name in positive if _kind(name) == "success"]
    return min(named, key=lambda n: (not positive[n], len(positive[n]), n))


#: Trail of a document that is one record.
DOCUMENT = ("(document)",)
#: Levels of nesting that are looked into, and levels that become columns.
_DEEPEST, _COLUMN_DEPTH = 12, 5
#: A text that an object or a list becomes is at most so long.
_LONGEST = 1 << 20


#: Records of one kind in one document: keys that lead to them, `*` for those of a map, which sets
#: of one kind share; (place, column → value) of each, nested keys joined by dots, keys of maps as
#: `(key 0)`, …; column → value around the set.
RecordSet: TypeAlias = "tuple[tuple[str, ...], list[tuple[str, dict[str, Any]]], dict[str, Any]]"


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a value is in a document.

    Attributes:
        trail, around: As those of a set of records that begins here.
        at: Where a person finds the value.
        keys: Number of maps around it whose keys are columns.
    """

    trail: tuple[str, ...] = ()
    around: Mapping[str, Any] = field(default_factory=dict)
    at: str = ""
    keys: int = 0

    def inside(
        self, trail: tuple[str, ...], known: Mapping[str, Any], at: str, keys: int = 0
    ) -> _Spot:
        """A spot below this one, with further values around it."""
        around = {**self.around, **known}
        return _Spot((*self.trail, *trail), around, self.at + at, self.keys + keys)

    def set_of(
        self, rows: Iterable[tuple[str, Mapping[str, Any]]], *trail: str,
        known: Mapping[str, Any] = MappingProxyType({}),
    ) -> RecordSet:  # fmt: skip
        """The set of some records, each with its place below this one."""
        flat_rows = [(self.at + place, flat(row)) for place, row in rows]
        return (*self.trail, *trail), flat_rows, {**self.around, **known}


def record_sets(value: Any) -> Iterator[RecordSet]:
    """All sets of records in a JSON value, and the value itself as a set of one."""
    yield from _inside(value, _Spot())
    if isinstance(value, dict):
        yield DOCUMENT, [("", flat(value))], {}


def _inside(value: Any, spot: _Spot) -> Iterator[RecordSet]:
    if len(spot.trail) > _DEEPEST:
        return
    if isinstance(value, dict):
        yield from _of_object(value, spot)
    elif isinstance(value, list) and not named_values(value):
        rows = [(f"[{n}]", item) for n, item in enumerate(value) if isinstance(item, dict)]
        if 2 * len(rows) <= len(value):
            return
        yield spot.set_of(rows)
        for place, row in rows:  # a list of runs, each with its questions
            lists = {k: v for k, v in row.items() if isinstance(v, dict | list) and len(v) >= 2}
            known = _scalars(row) if lists else {}
            for key, part in lists.items():
                yield from _inside(part, spot.inside(("[]", key), known, f"{place}.{key}"))


def _of_object(value: dict[str, Any], spot: _Spot) -> Iterator[RecordSet]:
    if rows := table_rows(value):
        yield spot.set_of((f"[{n}]", row) for n, row in enumerate(rows))
        return
    if lists := id_lists(value):
        named = ((f".{row['listed_in']}", row) for row in outcomes(value, lists, spot.around))
        yield spot.set_of(named, "(lists of ids)", known=_scalars(value))
    elif "[]" not in spot.trail and (rows := columns_of_lists(value)):
        numbered = ((f"[{n}]", row) for n, row in enumerate(rows))
        yield spot.set_of(numbered, "(lists)", known=_scalars(value))
        return
    yield from _of_map(value, spot)


def _of_map(value: dict[str, Any], spot: _Spot) -> Iterator[RecordSet]:
    """Sets of an object whose keys are names: of models, questions or attempts; or inside it."""
    key, inner = f"(key {spot.keys})", f"(key {spot.keys + 1})"
    parts = [*value.values()]
    of_one = of_objects(value) and alike(parts)
    # From names to objects: id → record, model → question → record.
    if of_one or (of_objects(value) and all(of_objects(p) and alike([*p.values()]) for p in parts)):
        if of_one:
            yield spot.set_of(((f".{k}", {key: k, **v}) for k, v in value.items()), "*")
        for k, part in value.items():
            yield from _of_object(part, spot.inside(("*",), {key: k}, f".{k}", 1))
        return
    if attempts := _attempts(value):
        rows = ((f".{k}[{n}]", {key: k, "sample": n, **item}) for k, n, item in attempts)
        yield spot.set_of(rows, "* = list")
    elif pairs := plain_maps(value):
        cells = ((f".{a}.{b}", {key: a, inner: b, "value": v}) for a, b, v in pairs)
        yield spot.set_of(cells, "* = values")
    else:
        if spot.trail and (column := plain_map(value)) is not None:
            cells = ((f".{k}", {key: k, spot.trail[-1]: column[k]}) for k in value)
            yield spot.set_of(cells, "* = value")
        known = _scalars(value)
        for k, part in value.items():
            if isinstance(part, dict | list):
                yield from _inside(part, spot.inside((k,), known, f".{k}"))


def _attempts(value: Mapping[str, Any]) -> list[tuple[str, int, dict[str, Any]]]:
    """(key, number, record) of a map of lists of records that are alike; empty for other maps."""
    listed = len(value) >= 2 and all(
        isinstance(p, list) and p and all(isinstance(item, dict) for item in p)
        for p in value.values()
    )
    attempts = [(k, n, item) for k, p in value.items() if listed for n, item in enumerate(p)]
    return attempts if attempts and alike([item for *_, item in attempts]) else []


def alike(parts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether objects have most of their keys in common, as the records of a table have."""
    looked = [{*part} for part in parts[:: max(1, len(parts) // 50)]]
    common, every = set.intersection(*looked), set.union(*looked)
    return bool(common) and (2 * len(common) >= len(every) or len(common) >= 3)


def _scalars(value: Mapping[str, Any], levels: int = 2) -> dict[str, Any]:
    """Plain values beside a set, also one or two levels down."""
    scalars: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict) and len(item) <= 50 and levels:
            scalars |= {f"{key}.{k}": v for k, v in _scalars(item, levels - 1).items()}
        elif isinstance(item, list) and len(item) == 1 and isinstance(item[0], str) and levels == 2:
            scalars[key] = item[0]
        elif isinstance(item, bool | int | float) or (isinstance(item, str) and len(item) <= 300):
            scalars[key] = item
    return scalars


def kinds_of(rows: Sequence[dict[str, Any]]) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """Kind → (number, row): lines of one file that are records of several kinds.

    A line that shares no key with most others is a header; events say in `type` what they are, and
    those of one type have keys that no other has.
    """
    forms = Counter(tuple(row) for row in rows)
    most = {*max(forms.items(), key=lambda item: (item[1], item[0]), default=((), 0))[0]}
    kinds: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for n, row in enumerate(rows):
        kinds["" if most & row.keys() else "(header)"].append((n, row))
    parts: dict[Any, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for n, row in kinds[""]:
        parts[str(row.get("type"))].append((n, row))
    held = {kind: {key for _, row in own for key in row} for kind, own in parts.items()}
    shared = Counter(key for keys in held.values() for key in keys)
    typed = all(isinstance(row.get("type"), str) for _, row in kinds[""])
    own_keys = all(any(shared[key] == 1 for key in keys) for keys in held.values())
    if not (typed and own_keys and 2 <= len(parts) <= 20):
        return dict(kinds)
    return {**parts, **{kind: own for kind, own in kinds.items() if kind}}


def flat(
    record: Mapping[str, Any], before: str = "", row: dict[str, Any] | None = None, depth: int = 0
) -> dict[str, Any]:
    """A record with nested keys joined by dots; lists as texts, those of one plain value as it."""
    row = {} if row is None else row
    for key, item in record.items():
        name = f"{before}{key}"
        if len(row) >= MAX_COLUMNS:
            break
        if isinstance(item, list):
            named = named_values(item) or _turns(item)
            single = len(item) == 1 and isinstance(item[0], dict) and "[0]" not in before
            if not named and single:
                name, item = f"{name}[0]", item[0]
            elif named:
                row |= {f"{name}.{inner}": value for inner, value in named.items()}
                continue
        if isinstance(item, dict) and depth < _COLUMN_DEPTH and item:
            flat(item, f"{name}.", row, depth + 1)
        else:
            row[name] = _unlisted(item) if isinstance(item, list | dict) else item
    return row


def _turns(value: list[Any]) -> dict[str, str]:
    """The first text of the user and the last of the assistant, of a conversation."""
    if not value or not all(isinstance(item, dict) and "role" in item for item in value):
        return {}
    said = [(str(item["role"]), item.get("content")) for item in value]
    texts = [(role, text) for role, text in said if isinstance(text, str)]
    users = [text for role, text in texts if role in ("user", "human")]
    answers = [text for role, text in texts if role in ("assistant", "ai", "agent", "model")]
    turns = {"user": users[:1], "assistant": answers[-1:]}
    return {role: listed[0] for role, listed in turns.items() if listed}


def _unlisted(value: Any) -> Any:
    """A list of one plain value (or of one such list) as the value; else its JSON, cut."""
    inner = value
    while isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    if not isinstance(inner, list | dict):
        return inner
    if not inner:
        return None
    return json.dumps(value, ensure_ascii=False, default=str)[:_LONGEST]


# Documents of a stranger's folder, file or archive: JSON values, and tables of CSV or Parquet.

#: Ends of names that are read; `.gz` may follow those of text.
ENDINGS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".yaml", ".yml", ".zip")
#: Workbooks that openpyxl reads where it is installed; other workbooks, and databases.
_BOOKS = (".xlsx", ".xlsm")
_SHEETS = (".xls", ".ods", ".numbers", ".sqlite", ".sqlite3", ".db", ".duckdb")
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
        raise refusal("nothing_there", path, path=path)
    listed = [path] if path.is_file() else _below(path)
    books = _BOOKS if find_spec("openpyxl") else ()
    sheets = any(files.ends(item).lower() in {*_BOOKS, *_SHEETS} - {*books} for item in listed)
    if path.is_file() and not sheets:
        return [path], []
    result = [item for item in listed if files.ends(item).lower() in (*ENDINGS, ".eval", *books)]
    if not result:
        alone = "workbooks" if path.is_file() else "workbooks_alone"
        endings = ", ".join(f"*{end}" for end in ENDINGS)
        raise refusal(alone if sheets else "no_results", path, endings=endings)
    for item in result:
        inside(item, path)
    if len(result) > MAX_FILES or sum(item.stat().st_size for item in result) > MAX_TOTAL:
        raise too_large(path, f"holds more than {MAX_FILES:,} files or {MAX_TOTAL:,} bytes")
    others = sorted({*listed} - {*result})
    return result, [item.relative_to(path).as_posix() for item in others]


def _below(path: Path) -> list[Path]:
    """The files below a folder that are not hidden, in order of name."""
    return [
        item for item in sorted(path.rglob("*")) if item.is_file()
        and not any(part.startswith(".") for part in item.relative_to(path).parts)
    ]  # fmt: skip


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
        if files.ends(path).lower() in _BOOKS:
            yield from _workbook(path, (*above, *_place(name)), name)
            continue
        if path.suffix != ".zip":
            yield _document(path, (*above, *_place(name)), name)
            continue
        for ending in (".json", ".jsonl", ".csv", ".tsv"):
            for member, data in members(path, ending):
                place, where = (*above, *_place(f"{name}/{member}")), f"{name}:{member}"
                if ending in (".json", ".jsonl"):
                    yield _parsed(data, place, where)
                    continue
                with io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="") as stream:
                    rows = files.csv_rows(stream, Path(where), short_rows=True)
                    yield _table(rows, place, where)


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
    if ending == ".json":
        packed = path.suffix == ".gz"
        data = files.json_text(path).encode() if packed else whole(path)
        return _parsed(data, place, name)
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
    named = {item.name for item in inner} if pa.types.is_struct(inner) else set()
    return len(named) >= 2 and not named & {"role", "from", "content"}


def _parquet(path: Path) -> pa.Table | list[dict[str, Any]]:
    from routeyard.pipelines.common.isolation.parquet_file import batches

    regular(path)
    with (
        reading(path, MAX_RATIO) as (worker, most, limits),
        closing(worker.stream(batches, str(path.absolute()), most, limits=limits)) as stream,
    ):
        results = list(stream)
    if not results:
        return pa.table({})
    table = pa.Table.from_batches(results)
    if table.num_rows <= _MOST_NESTED and any(map(_of_answers, table.schema)):
        return list(table.to_pylist())
    return plain_columns(table)


def _workbook(path: Path, place: tuple[str, ...], name: str) -> Iterator[Document]:
    """The sheets that hold a row below their header, as tables."""
    from routeyard.pipelines.common.isolation.workbook import sheets

    regular(path)
    listed: dict[str, list[list[Any]]] = {}
    with (
        reading(path, MAX_RATIO) as (worker, _, limits),
        closing(worker.stream(sheets, str(path.absolute()), limits=limits)) as stream,
    ):
        for title, rows in stream:
            listed.setdefault(title, []).extend(
                row for row in rows if any(cell not in (None, "") for cell in row)
            )
    for title, (header, *rows) in ((t, rows) for t, rows in listed.items() if len(rows) > 1):
        names = [
            str(cell) if cell not in (None, "") else f"unnamed_{n}" for n, cell in enumerate(header)
        ]
        table = table_of([dict(zip(names, row, strict=False)) for row in rows])
        yield Document((*place, title), f"{name}:{title}", rows=table)


def _table(rows: Iterator[dict[str, str | None]], place: tuple[str, ...], name: str) -> Document:
    """Rows of a CSV; all columns are texts: what they hold is decided with all of one in view."""
    columns: dict[str, list[str | None]] = {}
    short: list[int] = []
    for number, row in enumerate(rows, start=1):
        for key, value in row.items():
            columns.setdefault(key or "unnamed", []).append(value)
        if None in row.values():
            short.append(number)
    table = pa.table({key: point_for_comma(pa.array(values, pa.string()))
                      for key, values in columns.items()})  # fmt: skip
    if not short:
        return Document(place, name, rows=table)
    at = tuple(f"{name}, row {number}" for number in short[:3])
    return Document(place, name, table, notes=(told("cut_rows", len(short), name, at, file=name),))


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


# Sets of records of one kind in all documents of a folder, as one table each.

#: Columns of the place of a row, its number in the file, and the parts of the path from its end.
AT, ROW, PATH = "(at)", "(row)", "(path {})"
#: What precedes the name of a setting that the path states.
NAMED = "(name)."
#: Parts of a path that are looked at.
_PARTS = 10
_SETTING = re.compile(r"(?:^|[-_])([A-Za-z]+)=([^=]+)$")


@dataclass(slots=True)
class Group:
    """Records of one kind, from one or several documents.

    Attributes:
        trail: Keys that lead to them; empty for the rows of a file.
        parts: A table per document.
        around: Columns that are true of a whole set, and not of a row.
        files: Names of the documents.
        columns: All columns of the parts.
        notes: What a person should know of how they were read.
    """

    trail: tuple[str, ...]
    parts: list[pa.Table] = field(default_factory=list)
    around: set[str] = field(default_factory=set)
    files: list[str] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    notes: list[ReadingNote] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Number of records."""
        return sum(part.num_rows for part in self.parts)

    def table(self) -> pa.Table:
        """All records; a column that is text in some parts is text in all."""
        return one_spelling(pa.concat_tables(same_types(self.parts), promote_options="permissive"))


def groups_of(documents: Iterable[Document]) -> list[Group]:
    """All sets of records in these documents; sets of one trail with like columns are one group."""
    groups: dict[tuple[tuple[str, ...], str], list[Group]] = {}
    for document in documents:
        for trail, table, around, kind in _tables(document):
            alike = groups.setdefault((trail, kind), [])
            columns = {n for n in table.column_names if not n.startswith("(") and n not in around}
            group = next((item for item in alike if _alike(item.columns, columns)), None)
            if group is None:
                group = Group(trail)
                alike.append(group)
            group.parts.append(table)
            group.around |= around
            group.columns |= columns
            group.files.append(document.name)
            group.notes += document.notes
    return [group for alike in groups.values() for group in alike]


def _alike(have: set[str], columns: set[str]) -> bool:
    """Whether two tables are of one kind: most of the smaller one's columns are the other's too."""
    return 2 * len(have & columns) > min(len(have), len(columns)) and 3 * len(
        have & columns
    ) >= len(have | columns)


_Set = tuple[tuple[str, ...], pa.Table, set[str], str]


def _tables(document: Document) -> Iterable[_Set]:
    """(trail, table, columns from around it, kind of rows) of each set in one document."""
    if isinstance(document.rows, pa.Table):
        if n := document.rows.num_rows:
            numbers = pa.array(np.arange(1, n + 1)).cast(pa.string())
            places = pc.binary_join_element_wise(document.name, numbers, ", row ")
            yield (), _placed(plainly_named(document.rows), document, places), set(), ""
        return
    if document.rows is not None:
        for kind, own in kinds_of([flat(row) for row in document.rows]).items():
            places = [f"{document.name}, row {i + 1}" for i, _ in own]
            table = plainly_named(table_of([row for _, row in own]))
            yield (), _placed(table, document, pa.array(places)), set(), kind
        # Lines that hold a list of answers each, and files of one object.
        if len(document.rows) == 1:
            yield from _sets(document, document.rows[0])
        elif any(map(_holds_records, document.rows[:5])):
            inner = _sets(document, document.rows)
            yield from (item for item in inner if item[0] != ("(list)",))
        return
    yield from _sets(document, document.value)


def _holds_records(row: Any) -> bool:
    """Whether a line holds a list of two objects or more that are no turns of a conversation."""
    return isinstance(row, dict) and any(
        isinstance(item, list) and len(item) >= 2 and not named_values(item) and all(
            isinstance(x, dict) and "role" not in x and len(x) >= 2 for x in item
        ) for item in row.values()
    )  # fmt: skip


def _sets(document: Document, value: Any) -> Iterable[_Set]:
    own_key = str(next(iter(value))) if isinstance(value, dict) and len(value) == 1 else None
    if own_key in document.place and isinstance(value[own_key], dict):
        # A file of one answer under its id, which its folder has too.
        record = {"(key 0)": own_key, **flat(value[own_key])}
        yield DOCUMENT, _placed(table_of([record]), document, pa.array([document.name])), set(), ""
        return
    for trail, rows, known in record_sets(value):
        table = table_of([row for _, row in rows])
        there = set(table.column_names)
        around = {k: v for k, v in known.items() if k not in there}
        told = [pa.array([told_of] * table.num_rows) for told_of in around.values()]
        names = [*table.column_names, *around]
        table = pa.Table.from_arrays([*table.columns, *told], names=names)
        places = pa.array([f"{document.name}{at}" for at, _ in rows], pa.string())
        yield (trail or ("(list)",)), _placed(table, document, places), {*around}, ""


def _placed(table: pa.Table, document: Document, places: pa.Array) -> pa.Table:
    """The table with its rows' places, the parts of the file's path, and settings in its name."""
    n = table.num_rows
    for part in (piece for name in document.place for piece in re.split(r"[,:]", name)):
        if (stated := _SETTING.search(part)) and (
            name := NAMED + stated[1]
        ) not in table.column_names:
            table = table.append_column(name, pa.array([stated[2]] * n, pa.string()))
    for number, part in enumerate(reversed(document.place[-_PARTS:]), start=1):
        table = table.append_column(PATH.format(number), pa.repeat(part, n))
    table = table.append_column(ROW, pa.array(np.arange(1, n + 1)))
    return table.append_column(AT, places)


# Groups of one source put together: more answers, texts of answers, or the same once more.

#: Scored answers that are compared with another set; beyond, sets are put side by side.
_COMPARED = 2_000_000
#: What a second set of the same answers may add to the first.
FILLED = ("text", "prompt", "reference", "status", "error", "served_model", "cost_usd",
          "prompt_tokens", "completion_tokens", "latency_s")  # fmt: skip


@dataclass(slots=True)
class AnswerSet:
    """The answers of one group in the normal form."""

    group: Group
    done: Assigned
    table: pa.Table

    @property
    def scored(self) -> int:
        """Number of answers with a score."""
        return int(self.table.num_rows - self.table.column("score").null_count)

    @property
    def files(self) -> str:
        """Names of the first files."""
        return ", ".join(list(dict.fromkeys(self.group.files))[:2])


def merged(
    answers: Sequence[AnswerSet],
) -> tuple[pa.Table, dict[str, str], list[ReadingNote]]:
    """All answers once: table, columns, notes.

    The set with most scores counts; another that scores the same questions is compared with it,
    one that has texts alone gives it texts, and one with other answers is put beside it.
    """
    first, *more = sorted(
        answers,
        key=lambda s: (-s.scored, -s.table.num_rows, -len(s.done.roles), s.group.trail),
    )
    table = first.table
    columns, notes = dict(first.done.roles), [*first.done.notes]
    for item in more:
        n, trails = item.table.num_rows, (first.group.trail, item.group.trail)
        if item.scored == 0 and first.scored > 0:
            table, note = _with_texts(table, item)
            notes.append(note)
            continue
        share, same = _overlap(table, item.table)
        if share >= 0.5:
            if same == 1:
                table, filled = _filled(table, item)
                notes += filled
            agreed = "" if same is None else f", {same:.1%} of them with the same score"
            notes.append(told("repeats", n, files=item.files, agreed=agreed))
            if same is not None and same < 1:
                files = {"files": item.files, "first": first.group.files[0]}
                notes.append(told("other_scores", n, **files))
        elif not _same_source(*trails):
            notes.append(told("other_kind", n, files=item.files))
        else:
            table = pa.concat_tables([table, item.table])
            notes += item.done.notes
            columns = {**item.done.roles, **columns}
    return table, columns, list(dict.fromkeys(notes))


def _same_source(first: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two kinds of sets are answers of one source: rows of files, or lists of ids."""
    plain = all(len(item) <= 1 and item != DOCUMENT for item in (first, other))
    return first == other or plain or (first[-1:] == other[-1:] == ("(lists of ids)",))


def _keys(table: pa.Table) -> list[tuple[str, str]]:
    return list(zip(*(table.column(n).to_pylist() for n in ("arm", "question")), strict=True))


def _rows_of(table: pa.Table, source: pa.Table) -> pa.Array:
    """For each row of a table the row of the source with the same arm and question, or null.

    A provider before the name of an arm does not count.
    """
    keys, have = (
        [((arm or "").rpartition("/")[2], asked) for arm, asked in _keys(t)]
        for t in (table, source)
    )
    rows = {key: n for n, key in enumerate(have)}
    return pa.array(map(rows.get, keys), pa.int64())


def _overlap(have: pa.Table, more: pa.Table) -> tuple[float, float | None]:
    """Share of further answers that were read already, and the share of those that agree."""
    if have.num_rows > _COMPARED:
        return 0.0, None
    rows = _rows_of(more, have)
    apart = pc.subtract(have.column("score").take(rows), more.column("score")).drop_null()
    agree = pc.mean(pc.less(pc.abs(apart), 1e-9)).as_py() if len(apart) else None
    return 1 - rows.null_count / max(1, more.num_rows), agree


def _with_texts(table: pa.Table, source: AnswerSet) -> tuple[pa.Table, ReadingNote]:
    """The table with the texts of a set without scores, joined by arm and question.

    Where the arms are named otherwise, files of one folder are of one arm.
    """
    keys = _keys(source.table)
    by_arm = {key: n for n, key in enumerate(keys)}
    folders = zip(_folders(source.table), keys, strict=True)
    by_folder = {(folder, asked): n for n, (folder, (_, asked)) in enumerate(folders) if folder}
    near = sorted({folder for folder, _ in by_folder})

    def row_of(key: tuple[str, str], folder: str) -> int | None:
        beside = [f for f in near if folder and (folder.startswith(f) or f.startswith(folder))]
        found = (by_folder[f, key[1]] for f in beside if (f, key[1]) in by_folder)
        return by_arm[key] if key in by_arm else next(found, None)

    rows = pa.array(map(row_of, _keys(table), _folders(table)), pa.int64())
    if joined := len(rows) - rows.null_count:
        filled = _completed(table, source.table, rows, ("text", "prompt"))
        return filled, told("texts", joined, files=source.files)
    return table, told("no_answers", source.table.num_rows, files=source.files)


def _filled(table: pa.Table, source: AnswerSet) -> tuple[pa.Table, list[ReadingNote]]:
    """The table with what it lacks, and a set of the same answers with the same scores states."""
    n = source.table.num_rows
    lacks = [name for name in FILLED if source.table.column(name).null_count < n
             and table.column(name).null_count == table.num_rows]  # fmt: skip
    if not lacks:
        return table, []
    filled = _completed(table, source.table, _rows_of(table, source.table), lacks)
    return filled, [told("filled", n, names=", ".join(lacks), files=source.files)]


def _completed(table: pa.Table, source: pa.Table, rows: pa.Array, names: Iterable[str]) -> pa.Table:
    """The table with what it lacks in some columns, of these rows of the source."""
    for name in names:
        values = pc.coalesce(table.column(name), source.column(name).take(rows))
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def _folders(table: pa.Table) -> list[str]:
    """Folder of each row's file."""
    places = table.column("at").to_pylist()
    return [(place or "").partition(", row ")[0].rpartition("/")[0] for place in places]
