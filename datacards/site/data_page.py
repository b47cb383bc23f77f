"""Content of the data page: every column, saved SQL, sources and licences, how to cite."""

from __future__ import annotations

from typing import Any

from routeyard.datacards.cite import bibtex
from routeyard.datacards.sections import recorded_words
from routeyard.datacards.site.release import SiteRelease
from routeyard.schemas import CONTRACTS


def content(book: SiteRelease) -> dict[str, Any]:
    """What `data.html.jinja` shows."""
    manifest = book.manifest
    words = manifest.recipe.get("release") or {}
    tables = []
    for name, entry in manifest.tables.items():
        contract = CONTRACTS.get(name)
        tables.append(
            {
                "name": name,
                "rows": entry.rows,
                "file": entry.file,
                "says": contract.description if contract else "",
                "key": ", ".join(contract.key) if contract else "",
                "columns": contract.columns if contract else (),
            }
        )
    return {
        "tables": tables,
        "recorded": recorded_words(manifest.recipe, manifest.figures),
        "saved": book.saved,
        "sources": manifest.sources,
        "license": words.get("license") or "NOASSERTION",
        "citation": words.get("citation") or bibtex(manifest.model_dump(mode="json")),
        "known_issues": words.get("known_issues") or [],
        "waivers": [waiver.model_dump() for waiver in manifest.waivers],
    }
