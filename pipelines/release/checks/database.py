"""The `.duckdb` file against the tables: every object in it, none of them run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.io.files import sha256
from routeyard.pipelines.io.untrusted import RELEASED, physical_memory, reading
from routeyard.pipelines.release.database import (
    LOCKED,
    checksum_of,
    database_content,
    stored_rows,
    write_database,
)
from routeyard.pipelines.release.finding import Finding, first_line
from routeyard.pipelines.release.manifest import code_version
from routeyard.pipelines.release.summaries import Summaries, metered
from routeyard.pipelines.release.tables import IN_DATABASE
from routeyard.schemas import CONTRACTS, OUTCOMES, StoredTable
from routeyard.schemas.manifest import Manifest

#: What a database can hold: kind of object → where DuckDB lists it, its name, and what is compared
#: of it beside comment and tags.
_LISTED = {
    "table": ("duckdb_tables()", "table_name", "sql"),
    "view": ("duckdb_views()", "view_name", "sql"),
    "column": (
        "duckdb_columns()",
        "table_name || '.' || column_name",
        "concat_ws(' ', column_index, data_type, is_nullable, column_default)",
    ),
    "macro": ("duckdb_functions()", "function_name", "macro_definition"),
    "type": ("duckdb_types()", "type_name", "logical_type"),
    "sequence": ("duckdb_sequences()", "sequence_name", "sql"),
    "index": ("duckdb_indexes()", "index_name", "sql"),
    "schema": ("duckdb_schemas()", "schema_name", "sql"),
    "constraint": ("duckdb_constraints()", "table_name", "constraint_text"),
}
_BUILT_IN = frozenset({"sequence", "index", "constraint"})  # these have no `internal`
#: Kind, schema and name → definition, comment and tags.
Objects = dict[tuple[str, str, str], tuple[Any, ...]]


def check_database(
    release: Path, manifest: Manifest, tables: Mapping[str, pa.Table | StoredTable]
) -> Iterator[Finding]:
    """Findings in the database; a view or a macro of a stranger is read, never evaluated.

    Args:
        tables: The release's tables that were read; only their rows are counted here.
    """
    name = manifest.database.file
    path = release / name
    if path.is_symlink() or not path.is_file():
        if not path.is_symlink():
            yield Finding("file", name, "is missing")
        return
    yield from _checksum(path)
    held = [table for table in manifest.database.tables if table in CONTRACTS]
    for table in manifest.database.tables:
        if table not in manifest.tables:
            yield Finding("database", name, f"the manifest lists a table {table!r} of no file")
    try:
        rows = {table: tables[table].num_rows for table in held if table in tables}
        with reading(path, RELEASED) as (worker, _, limits):
            # Its tables are sorted: within the machine's memory, or on the disk.
            limits = replace(limits, memory=physical_memory(), file_size=1 << 50)
            about = manifest.model_dump_json()
            faults = worker.call(compare, str(path.absolute()), about, held, rows, limits=limits)
    except (SourceError, OSError) as error:
        faults = [first_line(error)]
    for says in faults:
        yield Finding("database", name, says)


def _checksum(path: Path) -> Iterator[Finding]:
    beside = checksum_of(path)
    if beside.is_symlink() or not beside.is_file() or beside.stat().st_size > 4096:
        yield Finding("file", beside.name, "is missing, or no checksum")
        return
    words = beside.read_bytes().decode("utf-8", "replace").split()
    if words != [sha256(path), path.name]:
        yield Finding("file", path.name, f"has another SHA-256 than {beside.name} says")


def compare(path: str, manifest: str, held: list[str], rows: dict[str, int]) -> list[str]:
    """What a database holds that it should not, or lacks; called in the limited process.

    Args:
        manifest: Its JSON.
        held: Tables of contracts that the manifest lists in the database.
        rows: Table → rows of its Parquet file.
    """
    try:
        return list(_compare(Path(path), Manifest.model_validate_json(manifest), held, rows))
    except MemoryError:
        raise
    except Exception as error:  # DuckDB raises anything over a damaged file
        return [f"cannot be read: {first_line(error)}"]


def _compare(
    path: Path, manifest: Manifest, held: list[str], rows: Mapping[str, int]
) -> Iterator[str]:
    import duckdb

    with duckdb.connect(str(path), read_only=True, config=dict(LOCKED)) as given:
        found = objects(given)
    expected = _defined()
    if manifest.code_version != code_version():
        # Another version may have described a column in other words.
        found, expected = _undescribed(found), _undescribed(expected)
    clean = True
    for key in sorted(found.keys() | expected.keys()):
        if found.get(key) == expected.get(key):
            continue
        clean = False
        says = f"its {key[0]} {'.'.join(key[1:])[:100]!r} is not what a release defines"
        if key not in expected:
            says = f"holds a {key[0]} {'.'.join(key[1:])[:100]!r} that no release has"
        elif key not in found:
            says = f"lacks its {key[0]} {'.'.join(key[1:])!r}"
        yield says
    if not clean:
        return  # a stranger's definitions are read, never evaluated
    for name, count in stored_rows(path, rows).items():
        if count != rows[name]:
            clean = False
            yield f"its table {name} has {count:,} rows, the Parquet file {rows[name]:,}"
    if not clean:
        return  # sorting rows without end would take memory without end
    whole, each = database_content(path, held)
    for name, content in each.items():
        if name in manifest.tables and content != manifest.tables[name].content:
            yield f"its table {name} differs from the Parquet file's"
    if whole != manifest.database.content:
        yield "its content has another fingerprint than the manifest says"


@cache  # for one who verifies several releases
def _defined() -> Objects:
    """What a release's database defines."""
    import duckdb
    import pyarrow.parquet as pq

    tables = {name: CONTRACTS[name].empty() for name in IN_DATABASE}
    summaries = Summaries(tables["queries"].column("task"), 0).tables()
    summaries["metered"] = metered(None, pa.array([], pa.string()))
    with tempfile.TemporaryDirectory(prefix="routeyard-verify-") as folder:
        path, outcomes = Path(folder, "empty.duckdb"), Path(folder, "outcomes.parquet")
        pq.write_table(OUTCOMES.empty(), outcomes)
        write_database(tables, path, outcomes=outcomes, summaries=summaries)
        with duckdb.connect(str(path), read_only=True) as fresh:
            return objects(fresh)


def _undescribed(found: Objects) -> Objects:
    """Definitions without comments and tags, which end each of them."""
    return {key: value[:-2] for key, value in found.items()}


def objects(connection: Any) -> Objects:
    """(kind, schema, name) → definition, comment and tags of each object in a database."""
    found: Objects = {}
    (database,) = connection.execute("SELECT current_database()").fetchone()
    for kind, (listed, called, compared) in _LISTED.items():
        about = "NULL, NULL" if kind == "constraint" else "comment, tags"
        sql = f"SELECT schema_name, {called}, {compared}, {about} FROM {listed}"
        own = "" if kind in _BUILT_IN else " AND NOT internal"
        rows = connection.execute(f"{sql} WHERE database_name = ?{own} ORDER BY ALL", [database])
        for number, (schema, name, *rest) in enumerate(rows.fetchall()):
            key = (kind, str(schema), str(name))
            if key in found or kind == "constraint":  # overloads of one macro, several rules
                key = (kind, str(schema), f"{name} #{number}")
            found[key] = tuple(map(str, rest))
    return found
