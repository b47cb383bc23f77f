"""A release checked by somebody who has DuckDB and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb


def shown(release: Path) -> dict[str, int]:
    """Check → rows that break it, of the database and of `checks.sql`; -1 where DuckDB stops."""
    result = {}
    (path,) = release.glob("*.duckdb")
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            connection.execute("SET enable_external_access = false")
            result |= _summary("database", connection, "FROM checks.summary")
    except duckdb.Error as error:
        result[f"database: {error}"] = -1
    before = Path.cwd()
    os.chdir(release)
    try:
        with duckdb.connect() as connection:
            result |= _summary("files", connection, Path("checks.sql").read_text())
    except duckdb.Error as error:
        result[f"files: {error}"] = -1
    finally:
        os.chdir(before)
    return {name: rows for name, rows in result.items() if rows}


def _summary(where: str, connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, int]:
    rows = connection.execute(sql).fetchall()
    return {f"{where}: {name}": broken for name, _, broken, _ in rows}
