"""A DuckDB connection that can read one release and do nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipelines.errors import SourceError
from pipelines.release.manifest import read_manifest
from pipelines.release.matrix import WIDE


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


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
