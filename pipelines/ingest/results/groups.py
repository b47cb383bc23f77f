"""Sets of records of one kind in all documents of a folder, as one table each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from routeyard.pipelines.ingest.results.columns import (
    one_spelling,
    plainly_named,
    same_types,
    table_of,
)
from routeyard.pipelines.ingest.results.documents import Document
from routeyard.pipelines.ingest.results.json_tables import named_values
from routeyard.pipelines.ingest.results.record_sets import (
    DOCUMENT,
    RecordSet,
    flat,
    kinds_of,
    record_sets,
)
from routeyard.pipelines.ingest.results.values import ReadingNote

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


def groups_of(found: Iterable[Document]) -> list[Group]:
    """All sets of records in these documents; sets of one trail with like columns are one group."""
    groups: dict[tuple[tuple[str, ...], str], list[Group]] = {}
    for document in found:
        for trail, table, around, kind in _tables(document):
            alike = groups.setdefault((trail, kind), [])
            columns = {n for n in table.column_names if not n.startswith("(") and n not in around}
            group = next((one for one in alike if _alike(one.columns, columns)), None)
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
        n = document.rows.num_rows
        if n:
            places = [f"{document.name}, row {i}" for i in range(1, n + 1)]
            yield (), _placed(plainly_named(document.rows), document, pa.array(places)), set(), ""
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
            yield from (one for one in inner if one[0] != ("(list)",))
        return
    yield from _sets(document, document.value)


def _holds_records(row: Any) -> bool:
    """Whether a line holds a list of two objects or more that are no turns of a conversation."""
    return isinstance(row, dict) and any(
        isinstance(one, list) and len(one) >= 2 and not named_values(one) and all(
            isinstance(x, dict) and "role" not in x and len(x) >= 2 for x in one
        ) for one in row.values()
    )  # fmt: skip


def _sets(document: Document, value: Any) -> Iterable[_Set]:
    own_key = str(next(iter(value))) if isinstance(value, dict) and len(value) == 1 else None
    if own_key in document.place and isinstance(value[own_key], dict):
        # A file of one answer under its id, which its folder has too.
        record = {"(key 0)": own_key, **flat(value[own_key])}
        yield DOCUMENT, _placed(table_of([record]), document, pa.array([document.name])), set(), ""
        return
    for one in record_sets(value):
        table = table_of(one.records)
        around = {k: v for k, v in one.around.items() if k not in table.column_names}
        for name, known in around.items():
            table = table.append_column(name, pa.array([known] * table.num_rows))
        places = pa.array([f"{document.name}{at}" for at in one.at], pa.string())
        yield _erased(one), _placed(table, document, places), set(around), ""


def _erased(one: RecordSet) -> tuple[str, ...]:
    return one.trail or ("(list)",)


def _placed(table: pa.Table, document: Document, places: pa.Array) -> pa.Table:
    """The table with its rows' places, the parts of the file's path, and settings in its name."""
    n = table.num_rows
    for part in (piece for name in document.place for piece in re.split(r"[,:]", name)):
        if (stated := _SETTING.search(part)) and (
            name := NAMED + stated[1]
        ) not in table.column_names:
            table = table.append_column(name, pa.array([stated[2]] * n, pa.string()))
    for number, part in enumerate(reversed(document.place[-_PARTS:]), start=1):
        column = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), [part])
        table = table.append_column(PATH.format(number), column.cast(pa.string()))
    table = table.append_column(ROW, pa.array(range(1, n + 1), pa.int64()))
    return table.append_column(AT, places)
