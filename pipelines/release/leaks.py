"""Counts test questions of a release's split schemes that also stand in train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.parquet.bounds import RELEASED, bounded
from pipelines.release.inside import sealed
from schemas.leaks import group_of, leaked_tests, looked_for_duplicates
from schemas.manifest import Manifest


def leaks_of(release: Path, manifest: Manifest) -> list[dict[str, Any]]:
    """Rows of `schemas.leaks.LEAKS_SCHEMA` of the schemes in which some question leaks.

    No file is broken by it: a published split is kept as it was, and counted.
    """
    if "splits" not in manifest.tables or "queries" not in manifest.tables:
        return []

    def read(name: str, columns: list[str] | None = None) -> pa.Table:
        file = manifest.tables[name].file
        path = sealed(release, file, manifest.files.get(file))
        return pq.read_table(bounded(path, RELEASED), columns=columns)

    queries, splits = read("queries", ["query_id", "prompt"]), read("splits")
    groups = None
    if "duplicates" in manifest.tables and looked_for_duplicates(manifest.recipe):
        groups = group_of(read("duplicates", ["query_id", "group_id"]))
    found = leaked_tests(queries, splits, groups)
    return [row for row in found if row["verbatim"] or row["near_duplicates"]]
