"""Counts test questions of a release's split schemes that also stand in train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from schemas.leaks import group_of, leaked_tests, looked_for_duplicates
from schemas.manifest import Manifest


def leaks_of(release: Path, manifest: Manifest) -> list[dict[str, Any]]:
    """Rows of `schemas.leaks.LEAKS_SCHEMA` of the schemes in which some question leaks.

    No file is broken by it: a published split is kept as it was, and counted.
    """
    if "splits" not in manifest.tables or "queries" not in manifest.tables:
        return []
    queries = pq.read_table(
        release / manifest.tables["queries"].file, columns=["query_id", "prompt"]
    )
    splits = pq.read_table(release / manifest.tables["splits"].file)
    groups = None
    if "duplicates" in manifest.tables and looked_for_duplicates(manifest.recipe):
        file = release / manifest.tables["duplicates"].file
        groups = group_of(pq.read_table(file, columns=["query_id", "group_id"]))
    found = leaked_tests(queries, splits, groups)
    return [row for row in found if row["verbatim"] or row["near_duplicates"]]
