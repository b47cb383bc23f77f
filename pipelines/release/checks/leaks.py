"""Counts test questions of a release's split schemes that also occur in train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routeyard.pipelines.io.untrusted import RELEASED, bounded
from routeyard.pipelines.release.sealed_files import sealed
from routeyard.schemas import StoredTable
from routeyard.schemas.leaks import group_of, leaked_tests, looked_for_duplicates
from routeyard.schemas.manifest import Manifest


def leaks_of(release: Path, manifest: Manifest) -> list[dict[str, Any]]:
    """Rows of the table `leaks` of the schemes in which some question leaks.

    No file is broken by it: a published split is kept as it was, and counted.
    """
    if "splits" not in manifest.tables or "queries" not in manifest.tables:
        return []

    def stored(name: str) -> StoredTable:
        file = manifest.tables[name].file
        path = sealed(release, file, manifest.files.get(file))
        return StoredTable(bounded(path, RELEASED))

    groups = None
    if "duplicates" in manifest.tables and looked_for_duplicates(manifest.recipe):
        groups = group_of(stored("duplicates").read(["query_id", "group_id"]))
    found = leaked_tests(stored("queries"), stored("splits").read(), groups)
    return [row for row in found if row["verbatim"] != 0 or row["near_duplicates"]]
