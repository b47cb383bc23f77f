"""Near-duplicates in the health report: by source, across splits, with conflicting labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from routeyard.schemas.stored import register, statements

_SQL = statements(Path(__file__).with_suffix(".sql"))


def duplicate_tables(
    tables: Mapping[str, pa.Table], duplicates: pa.Table
) -> tuple[dict[str, pa.Table], int]:
    """Report tables of near-duplicates by name, and the number of groups whose labels conflict."""
    import duckdb

    with duckdb.connect() as connection:
        register(connection, "queries", tables["queries"])
        register(connection, "duplicates", duplicates)
        connection.execute(f"CREATE TEMP VIEW members AS {_SQL['members']}")
        by_source = connection.sql(_SQL["by_source"]).to_arrow_table()
        ((removed, conflicting),) = connection.execute(_SQL["single"]).fetchall()
        about = {"removed_members": str(removed)}
        found = {"duplicates_by_source": by_source.replace_schema_metadata(about)}
        if "splits" in tables:
            register(connection, "splits", tables["splits"])
            across = connection.sql(_SQL["across_splits"]).to_arrow_table()
            found["duplicates_across_splits"] = across
    return found, conflicting
