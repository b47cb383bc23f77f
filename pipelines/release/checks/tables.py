"""The tables of a release: each read again, and that every row has its parent."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from routeyard.pipelines.release.checks.reread import reread
from routeyard.pipelines.release.finding import Finding
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.manifest import Manifest
from routeyard.schemas.stored import register

Tables = dict[str, pa.Table | StoredTable]

#: (child table, its columns) → (parent table, its columns); every child row needs its parent.
REFERENCES = (
    ("responses", ("query_id",), "queries", ("query_id",)),
    ("responses", ("model_id",), "models", ("model_id",)),
    ("verdicts", ("query_id", "model_id", "sample"), "responses", None),
    ("labels", ("query_id",), "queries", ("query_id",)),
    ("labels", ("model_id",), "models", ("model_id",)),
    ("splits", ("query_id",), "queries", ("query_id",)),
    ("model_splits", ("model_id",), "models", ("model_id",)),
    ("embeddings", ("query_id",), "queries", ("query_id",)),
    ("preferences", ("query_id",), "queries", ("query_id",)),
)


def check_tables(
    release: Path, manifest: Manifest, readable: set[str], tables: Tables
) -> Iterator[Finding]:
    """Findings in the tables; `tables` gets those that hold their contracts."""
    for name, entry in manifest.tables.items():
        if entry.file not in readable:
            continue
        if name not in CONTRACTS:
            yield Finding("contract", entry.file, f"there is no contract {name!r}")
            continue
        findings, table = reread(release, name, entry)
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
        for child, columns, parent, parent_columns in REFERENCES:
            if child not in tables or parent not in tables:
                continue
            keys = parent_columns or columns
            on = " AND ".join(f'c."{a}" = p."{b}"' for a, b in zip(columns, keys, strict=True))
            shown = ", ".join(f'c."{column}"' for column in columns)
            rows = connection.execute(
                f"SELECT DISTINCT {shown} FROM {child} c ANTI JOIN {parent} p ON {on} ORDER BY ALL"
            ).fetchall()
            if rows:
                some = "; ".join("|".join(map(str, row)) for row in rows[:3])
                yield Finding(
                    "reference", child, f"{len(rows)} {'/'.join(columns)} not in {parent}: {some}"
                )
