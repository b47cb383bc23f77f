"""What tests of single checks share: a manifest that says something else, and its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routeyard.pipelines.verify.database import check_tables
from routeyard.schemas.release import Manifest

LABELS = "data/labels.parquet"


def other(manifest: Manifest, **changes: Any) -> Manifest:
    """The manifest with other values at `a__b`, its digest computed again."""
    told = manifest.model_dump(mode="json")
    for path, value in changes.items():
        *way, last = path.split("__")
        place = told
        for name in way:
            place = place[{"labels_file": LABELS}.get(name, name)]
        place[last] = value
    return Manifest.model_validate(told).sealed()


def places(findings: Any) -> list[tuple[str, str]]:
    """Check and place of each finding, which has to say something as well."""
    found = list(findings)
    assert all(one.says for one in found)
    return [(one.check, one.where) for one in found]


def tables_of(sound: Path, manifest: Manifest) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    assert list(check_tables(sound, manifest, set(manifest.files), tables)) == []
    return tables
