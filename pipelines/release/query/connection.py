"""A DuckDB connection that can read the sealed Parquet of one release and do nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.io.untrusted import literal
from routeyard.pipelines.release.database import LOCKED, VIEWS, comment
from routeyard.pipelines.release.derived_tables import WIDE, numbered
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.pipelines.release.query.label_rates import BY_SCORER, label_kinds
from routeyard.pipelines.release.sealed_files import sealed
from routeyard.pipelines.release.summaries import SQL
from routeyard.schemas import CONTRACTS, RESPONSES


def connect(release: Path, *, memory_limit: str = "4GB", threads: int | None = None) -> Any:
    """Read-only connection with every table of the release by name.

    All of them are views over the Parquet files that the manifest seals. The
    `.duckdb` file is for people without this code: it is never opened here, so
    what a stranger wrote into it answers nothing. Files outside the release,
    extensions and further settings are locked.

    Raises:
        SourceError: the release lacks a file, or one is damaged or not inside it.
    """
    import duckdb

    release = release.resolve()
    manifest = read_manifest(release)
    views: dict[str, str] = {}
    for name, entry in manifest.tables.items():
        if name in CONTRACTS and (release / entry.file).exists():
            # Add-ons may not have been fetched.
            views[name] = str(sealed(release, entry.file, manifest.files.get(entry.file)))
    if WIDE in manifest.files and (release / WIDE).exists():
        views["labels_wide"] = str(sealed(release, WIDE, manifest.files[WIDE]))
    summaries = {
        name: str(sealed(release, file, manifest.files[file]))
        for name in SQL
        if (file := numbered(name)) in manifest.files
    }
    try:
        connection = duckdb.connect()
        for name, path in views.items():
            connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {_rows(path)}')
            if name in CONTRACTS:
                comment(connection, name, "VIEW")
        _number(connection, views, summaries)
        connection.register("incoming", label_kinds(manifest.figures))
        connection.execute("CREATE TABLE label_kinds AS SELECT * FROM incoming")
        connection.unregister("incoming")
        connection.execute(f"CREATE VIEW label_rates AS {BY_SCORER}")
        allowed = ", ".join(map(_quoted, [*views.values(), *summaries.values()]))
        if threads:
            connection.execute(f"SET threads = {threads}")
        for setting in (
            f"allowed_paths = [{allowed}]",
            "temp_directory = ''",
            f"memory_limit = {_quoted(memory_limit)}",
            "python_enable_replacements = false",
            *(f"{name} = {value}" for name, value in LOCKED.items()),
        ):
            connection.execute(f"SET {setting}")
    except duckdb.Error as error:
        raise SourceError(
            f"the release cannot be opened: {str(error).splitlines()[0]}",
            where=str(release),
            next_step=f"find what is wrong with `routeyard verify {release}`",
        ) from error
    return connection


#: The row numbers of `outcomes` need not be looked up.
_FROM_OUTCOMES = {
    "labels": "SELECT query_no, model_no, score, correct, decided_by, contested, n_samples "
    "FROM memory.main.outcomes WHERE n_samples IS NOT NULL",
}


def _number(connection: Any, views: Mapping[str, str], summaries: Mapping[str, str]) -> None:
    """The names that the database has under `numbered`, as views of the sealed files."""
    connection.execute("ATTACH ':memory:' AS numbered")
    responses = "memory.main.responses"
    if "responses" not in views:
        responses = "numbered.main.no_responses"
        connection.register("incoming", RESPONSES.empty())
        connection.execute(f"CREATE TABLE {responses} AS SELECT * FROM incoming")
        connection.unregister("incoming")
    known = dict(_FROM_OUTCOMES)
    known["queries"] = _counted(views["queries"], "query_no::INTEGER")
    known["models"] = _counted(views["models"], "model_no::SMALLINT")
    known |= {name: f"SELECT * FROM {_rows(path)}" for name, path in summaries.items()}
    for name, sql in SQL.items():
        body = known.get(name) or sql.format(of="memory.main", responses=responses)
        connection.execute(f"CREATE VIEW numbered.main.{name} AS {body}")
    connection.execute(f"CREATE VIEW accuracy AS {VIEWS['accuracy']}")


def _counted(path: str, number: str) -> str:
    """Rows of a file with their 0-based number as the first column, `name::TYPE`."""
    name, kind = number.split("::")
    rows = _rows(path, "file_row_number = true")
    return f"SELECT file_row_number::{kind} AS {name}, * EXCLUDE (file_row_number) FROM {rows}"


def _rows(path: str, *settings: str) -> str:
    return f"read_parquet({', '.join([_quoted(literal(path)), *settings])})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
