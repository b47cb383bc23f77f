"""A DuckDB connection that can read one release and do nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipelines.errors import SourceError
from pipelines.release.derived.summaries import OUTCOMES, SQL
from pipelines.release.manifest import read_manifest
from pipelines.release.matrix import WIDE
from schemas.manifest import Manifest


def connect(release: Path, *, memory_limit: str = "4GB", threads: int | None = None) -> Any:
    """Read-only connection with every table of the release by name.

    The small tables come from the `.duckdb` file, the large ones are views over
    their Parquet files. Files outside the release, extensions and further
    settings are locked, so a query from a stranger is as harmless as its answer.

    Raises:
        SourceError: the release lacks a file or one is damaged.
    """
    import duckdb

    release = release.resolve()
    manifest = read_manifest(release)
    try:
        connection = duckdb.connect(str(release / manifest.database.file), read_only=True)
        paths = []
        for name, entry in manifest.tables.items():
            path = str(release / entry.file)
            if name in manifest.database.tables or not Path(path).exists():
                continue  # add-ons may not have been fetched
            paths.append(path)
            connection.execute(
                f'CREATE TEMP VIEW "{name}" AS SELECT * FROM read_parquet({_quoted(path)})'
            )
        if WIDE in manifest.files and (release / WIDE).exists():
            paths.append(str(release / WIDE))
            connection.execute(
                f"CREATE TEMP VIEW labels_wide AS SELECT * FROM read_parquet({_quoted(paths[-1])})"
            )
        number(connection, manifest, release)
        allowed = ", ".join(map(_quoted, paths))
        if threads:
            connection.execute(f"SET threads = {threads}")
        for setting in (
            f"allowed_paths = [{allowed}]",
            "temp_directory = ''",
            f"memory_limit = {_quoted(memory_limit)}",
            "python_enable_replacements = false",
            "autoinstall_known_extensions = false",
            "autoload_known_extensions = false",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            connection.execute(f"SET {setting}")
    except duckdb.Error as error:
        raise SourceError(
            f"the release cannot be opened: {str(error).splitlines()[0]}",
            where=str(release),
            next_step=f"find what is wrong with `routeyard verify {release}`",
        ) from error
    return connection


#: What `numbered` and `outcomes` read of responses, which a release need not hold.
_METERED = {
    "query_id": "VARCHAR",
    "model_id": "VARCHAR",
    "prompt_tokens": "BIGINT",
    "completion_tokens": "BIGINT",
    "reasoning_tokens": "BIGINT",
    "cost_usd": "DOUBLE",
    "latency_s": "DOUBLE",
}


def number(connection: Any, manifest: Manifest, release: Path) -> None:
    """Give a release made before `numbered` existed the same names, as views that count."""
    if connection.execute("FROM duckdb_schemas() WHERE schema_name = 'numbered'").fetchall():
        return
    entry = manifest.tables.get("responses")
    nothing = ", ".join(f"NULL::{kind} AS {name}" for name, kind in _METERED.items())
    responses = f"(SELECT {nothing} WHERE false)"
    if entry and (release / entry.file).exists():
        responses = f"read_parquet({_quoted(str(release / entry.file))})"
    of = connection.execute("SELECT current_database()").fetchone()[0].replace('"', '""')
    connection.execute("ATTACH ':memory:' AS numbered (READ_WRITE)")
    for name, sql in SQL.items():
        body = sql.format(of=f'"{of}".main', responses=responses)
        connection.execute(f"CREATE VIEW numbered.main.{name} AS {body}")
    if "outcomes" not in manifest.tables:
        connection.execute(f"CREATE TEMP VIEW outcomes AS {OUTCOMES.format(responses=responses)}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
