"""What tests of single checks share: a manifest that says something else, and its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routeyard.datacards.card import render
from routeyard.pipelines.release.manifest import Finding, read_manifest
from routeyard.pipelines.verify.database import check, check_tables, unreadable
from routeyard.pipelines.verify.evidence import Evidence
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


def evidence_of(
    sound: Path, manifest: Manifest, tables: dict[str, Any] | None = None, card: Any = render
) -> Evidence:
    """A release whose files are all readable, and these of its tables."""
    readable = set(manifest.files)
    return Evidence(sound, manifest, card, readable=readable, tables=tables or {})


def tables_of(sound: Path, manifest: Manifest) -> dict[str, Any]:
    evidence = evidence_of(sound, manifest)
    assert list(check_tables(evidence)) == []
    return evidence.tables


def verify_release(
    release: Path, *, render_card: Any = render, signer: str | None = None
) -> list[Finding]:
    """What a release contradicts itself in, before anything of it is computed again."""
    if found := unreadable(release):
        return found
    return list(check(Evidence(release, read_manifest(release), render_card, signer)))
