"""The `.duckdb` file: the small tables of a release, ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from pipelines.release.fingerprint import combine, content
from pipelines.release.tables import IN_DATABASE, contract_of, order_of

#: Storage version of the file. A reader older than the version that wrote a file cannot open it,
#: and the newest is what few people have: this is the oldest stable one, which all read.
STORAGE = "v1.0.0"
#: Views over tables inside the file; missing labels stay missing (avg and count skip nulls).
VIEWS = {
    "accuracy": (
        ("labels", "queries"),
        "SELECT model_id, task, count(score) AS n_labelled, avg(score) AS accuracy "
        "FROM labels JOIN queries USING (query_id) GROUP BY model_id, task ORDER BY ALL",
    ),
}


def write_database(tables: Mapping[str, pa.Table], path: Path) -> None:
    """Write the small tables among `tables` as real tables, with comments on the columns.

    Views over Parquet would resolve against the reader's current directory, so
    everything the file answers from lies inside it. DuckDB 1.0 and later can read the file.
    """
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "storage_compatibility_version": STORAGE
    }
    with duckdb.connect(str(path), config=config) as connection:
        for name in IN_DATABASE:
            if name not in tables:
                continue
            connection.register("incoming", tables[name])
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM incoming')
            connection.unregister("incoming")
            contract = contract_of(name)
            connection.execute(f'COMMENT ON TABLE "{name}" IS {_quoted(contract.says)}')
            for column in contract.columns:
                says = column.description + (f" [{column.unit}]" if column.unit else "")
                connection.execute(f'COMMENT ON COLUMN "{name}"."{column.name}" IS {_quoted(says)}')
        for name, (needs, sql) in VIEWS.items():
            if all(table in tables for table in needs):
                connection.execute(f"CREATE VIEW {name} AS {sql}")
        connection.execute("CHECKPOINT")


def database_content(path: Path, names: list[str]) -> tuple[str, dict[str, str]]:
    """Fingerprint of the file's content, and of each table in it."""
    import duckdb

    found: dict[str, str] = {}
    with duckdb.connect(str(path), read_only=True) as connection:
        for name in names:
            contract = contract_of(name)
            order = ", ".join(f'"{column}"' for column in order_of(contract))
            table = connection.sql(f'SELECT * FROM "{name}" ORDER BY {order}').to_arrow_table()
            found[name] = content(contract.conform(table, where=str(path)))
    return combine(found), found


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
