"""The tables of a release: each read again, and that every row has its parent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from routeyard.pipelines.release.checks.reread import reread
from routeyard.pipelines.release.finding import Finding
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.manifest import Manifest
from routeyard.schemas.stored import register

Tables = dict[str, pa.Table | StoredTable]

#: (child table, its columns, parent table that has the same): every child row needs its parent.
REFERENCES = (
    ("responses", ("query_id",), "queries"),
    ("responses", ("model_id",), "models"),
    ("verdicts", ("query_id", "model_id", "sample"), "responses"),
    ("labels", ("query_id",), "queries"),
    ("labels", ("model_id",), "models"),
    ("splits", ("query_id",), "queries"),
    ("model_splits", ("model_id",), "models"),
    ("embeddings", ("query_id",), "queries"),
    ("preferences", ("query_id",), "queries"),
    ("entropies", ("query_id", "model_id"), "labels"),
    ("signals", ("query_id", "model_id", "sample"), "responses"),
    ("steps", ("query_id", "model_id", "sample"), "responses"),
    ("hidden_states", ("query_id",), "queries"),
    ("images", ("query_id",), "queries"),
)


def check_tables(
    release: Path,
    manifest: Manifest,
    readable: set[str],
    tables: Tables,
    watch: Mapping[str, Callable[[pa.Table], None]] | None = None,
) -> Iterator[Finding]:
    """Findings in the tables; `tables` gets those that hold their contracts.

    Args:
        watch: Table → function that is given each part of it as it is read.
    """
    for name, entry in manifest.tables.items():
        if entry.file not in readable:
            continue
        if name not in CONTRACTS:
            yield Finding("contract", entry.file, f"there is no contract {name!r}")
            continue
        findings, table = reread(release, name, entry, (watch or {}).get(name))
        yield from findings
        if table is not None:
            tables[name] = table


def check_references(tables: Tables) -> Iterator[Finding]:
    """Rows whose parent is not there."""
    import duckdb

    # Joins of millions of ids go to the disk when they do not fit.
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '2GB'")
        connection.execute("SET temp_directory = ?", [tempfile.gettempdir()])
        for name, table in tables.items():
            register(connection, name, table)
        for child, columns, parent in REFERENCES:
            if child not in tables or parent not in tables:
                continue
            keys = ", ".join(f'"{column}"' for column in columns)
            orphans = f"SELECT DISTINCT {keys} FROM {child} ANTI JOIN {parent} USING ({keys})"
            rows = connection.execute(f"{orphans} ORDER BY ALL").fetchall()
            if rows:
                some = "; ".join("|".join(map(str, row)) for row in rows[:3])
                yield Finding(
                    "reference", child, f"{len(rows)} {'/'.join(columns)} not in {parent}: {some}"
                )
