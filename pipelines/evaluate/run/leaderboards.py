"""Results of many evaluations, read from their folders into one table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.run.predictions import leaderboard
from routeyard.pipelines.evaluate.run.written import metrics_table, told


def read_leaderboard(results: Iterable[Path]) -> tuple[pa.Table, list[str]]:
    """One row per result and router, best accuracy first; and the releases they are of.

    Args:
        results: `metrics.parquet` files, or folders that hold one.

    Raises:
        BadInput: there is no such file, or it is not an evaluation's table of metrics.
    """
    found, releases = {}, {}
    for path in results:
        file = path / "metrics.parquet" if path.is_dir() else path
        if not file.is_file():
            raise BadInput("there is no metrics.parquet", where=str(path))
        table = metrics_table(file)
        if table is None:
            raise BadInput("this is no metrics table of an evaluation", where=str(file))
        name = file.parent.name or str(file)
        found[name] = table
        if release := _release(file.parent):
            releases[name] = release
    return leaderboard(found, releases=releases), sorted(set(releases.values()))


def _release(folder: Path) -> str | None:
    """Release and split scheme of an evaluation; None where the folder does not record them."""
    about = told(folder)
    try:
        of = about["release"]
        return f"{of['name']} {of['version']} ({about['facts']['scheme']})"
    except (KeyError, TypeError):
        return None
