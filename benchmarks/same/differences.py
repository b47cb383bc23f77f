"""Differences of two folders of results: tables by column, JSON by path, other files by line.

What is only another place on the disk is no difference: each side's folders are replaced by names.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Columns that say which row it is, where a table has them.
KEYS = (
    "query_id", "model_id", "sample", "step", "scorer", "scheme", "router", "task", "pair_id",
    "request_hash", "attempt", "query_a", "query_b",
)  # fmt: skip
#: Differing values that are shown of one column or file.
SHOWN = 3


@dataclass(frozen=True, order=True)
class Difference:
    """One thing that differs.

    Attributes:
        what: `work/kind/file`, with `: column` of a table or `: path` of a JSON file behind it.
        how: Counts and the first values, old → new.
    """

    what: str
    how: str


def of_folders(old: Path, new: Path, places: Mapping[str, Mapping[str, str]]) -> list[Difference]:
    """All differences below two folders.

    Args:
        places: `old` and `new` → path on this machine → the name that stands for it.
    """
    names = {side: _files(folder) for side, folder in (("old", old), ("new", new))}
    found = [Difference(one, "only before") for one in names["old"] - names["new"]]
    found += [Difference(one, "only now") for one in names["new"] - names["old"]]
    for name in sorted(names["old"] & names["new"]):
        found += [
            Difference(f"{name}{f': {part}' if part else ''}", how)
            for part, how in _of_file(old / name, new / name, places)
        ]
    return sorted(found)


def _files(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def _of_file(old: Path, new: Path, places: Any) -> Iterator[tuple[str, str]]:
    if old.read_bytes() == new.read_bytes():
        return
    if old.suffix == ".parquet":
        import pyarrow.parquet as pq

        yield from of_tables(pq.read_table(old), pq.read_table(new))
    elif old.suffix in (".duckdb", ".db"):
        yield from _of_databases(old, new)
    else:
        texts = [_text(old, places["old"]), _text(new, places["new"])]
        if texts[0] == texts[1]:
            return
        if old.suffix == ".json":
            try:
                values = [dict(_flat(json.loads(text))) for text in texts]
            except json.JSONDecodeError:
                yield from of_lines(*texts)
            else:
                yield from of_values(*values)
        else:
            yield from of_lines(*texts)


def of_tables(old: Any, new: Any) -> Iterator[tuple[str, str]]:
    """(column, difference) of two Arrow tables, row by row of one key where they have one."""
    gone = [name for name in old.column_names if name not in new.column_names]
    come = [name for name in new.column_names if name not in old.column_names]
    yield from ((name, "column only before") for name in gone)
    yield from ((name, "column only now") for name in come)
    shared = [name for name in old.column_names if name in new.column_names]
    if old.num_rows != new.num_rows:
        yield "", f"{old.num_rows:,} rows → {new.num_rows:,}"
    rows = [_by_key(one.select(shared)) for one in (old, new)]
    only = [len(a.keys() - b.keys()) for a, b in (rows, rows[::-1])]
    if any(only):
        yield "", f"{only[0]:,} rows only before, {only[1]:,} only now"
    both = [key for key in rows[0] if key in rows[1]]
    for at, name in enumerate(shared):
        pairs = [
            (rows[0][key][at], rows[1][key][at])
            for key in both
            if not _equal(rows[0][key][at], rows[1][key][at])
        ]
        if pairs:
            yield name, f"{len(pairs):,} of {len(both):,} rows: {_shown(pairs)}"
    if old.schema.metadata != new.schema.metadata:
        yield "", "metadata of the schema differ"


def _by_key(table: Any) -> dict[Any, tuple[Any, ...]]:
    """Key → row; the number of the row is part of it where the columns are no key."""
    columns = [column.to_pylist() for column in table.columns]
    keys = [columns[table.column_names.index(one)] for one in KEYS if one in table.column_names]
    found: dict[Any, tuple[Any, ...]] = {}
    for at, row in enumerate(zip(*columns, strict=True)):
        key = json.dumps([one[at] for one in keys], default=str)
        number = 0
        while (key, number) in found:
            number += 1
        found[key, number] = row
    return found


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)  # NaN


def _of_databases(old: Path, new: Path) -> Iterator[tuple[str, str]]:
    import duckdb

    tables: list[dict[str, Any]] = []
    for path in (old, new):
        with duckdb.connect(str(path), read_only=True) as connection:
            listed = connection.sql(
                "SELECT table_name, table_type FROM information_schema.tables "
                "WHERE table_schema = 'main' ORDER BY 1"
            ).fetchall()
            tables.append(
                {
                    name: connection.sql(f'SELECT * FROM "{name}"').to_arrow_table()
                    if kind == "BASE TABLE"
                    else None
                    for name, kind in listed
                }
            )
    before, now = tables
    yield from ((name, "table or view only before") for name in before.keys() - now.keys())
    yield from ((name, "table or view only now") for name in now.keys() - before.keys())
    for name in sorted(before.keys() & now.keys()):
        if before[name] is not None and now[name] is not None:
            yield from ((f"{name}.{part}", how) for part, how in of_tables(before[name], now[name]))


def _text(path: Path, places: Mapping[str, str]) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    for place in sorted(places, key=len, reverse=True):
        text = text.replace(place, places[place])
    return text


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of each value of a JSON document that holds no other."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _flat(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for at, one in enumerate(value):
            yield from _flat(one, f"{path}[{at}]")
    else:
        yield path, value


def of_values(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, difference) of two flattened documents; places in lists of one path are one row."""
    pairs: dict[str, list[tuple[Any, Any]]] = {}
    for path in [*old, *(one for one in new if one not in old)]:
        a, b = old.get(path, "absent"), new.get(path, "absent")
        if not _equal(a, b):
            pairs.setdefault(re.sub(r"\[\d+\]", "[]", path), []).append((a, b))
    yield from ((path, f"{len(found):,} values: {_shown(found)}") for path, found in pairs.items())


def of_lines(old: str, new: str) -> Iterator[tuple[str, str]]:
    """How many lines of two texts differ, and the first of them."""
    changed = [
        line
        for line in difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    yield "", f"{len(changed):,} lines: " + " | ".join(line[:120] for line in changed[:SHOWN])


def _shown(pairs: list[tuple[Any, Any]]) -> str:
    return "; ".join(f"{str(a)[:60]!r} → {str(b)[:60]!r}" for a, b in pairs[:SHOWN])
