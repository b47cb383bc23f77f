"""The manifest against itself: digest, name and version, fingerprints of fingerprints."""

from __future__ import annotations

from collections.abc import Iterator

from routeyard.pipelines.release.finding import Finding
from routeyard.pipelines.release.fingerprint import combine
from routeyard.pipelines.release.manifest import MANIFEST
from routeyard.pipelines.release.sealed_files import wrong_name
from routeyard.schemas.manifest import Manifest


def check_seal(manifest: Manifest) -> Iterator[Finding]:
    """Findings in the manifest alone."""
    if manifest.digest != manifest.expected_digest():
        yield Finding("manifest", MANIFEST, "was edited: its digest does not match what it says")
    if (manifest.name, manifest.version) != (
        manifest.recipe.get("name"),
        manifest.recipe.get("version"),
    ):
        yield Finding("manifest", MANIFEST, "name or version differs from the recipe's")
    tables = manifest.tables.items()
    contents = combine({name: entry.content for name, entry in tables})
    timeless = combine({name: entry.content_without_times for name, entry in tables})
    if (manifest.content, manifest.content_without_times) != (contents, timeless):
        yield Finding("manifest", MANIFEST, "the content fingerprint is not that of its tables")
    yield from _names(manifest)


def _names(manifest: Manifest) -> Iterator[Finding]:
    """Every file that the manifest names, and that each is named once."""
    named = [*manifest.files, manifest.database.file]
    for name in {*named, *(entry.file for entry in manifest.tables.values())}:
        if says := wrong_name(name):
            yield Finding("path", name[:200], f"the manifest names it, and it {says}")
    seen: dict[str, str] = {}
    for name in named:
        # Two names that one file system tells apart and another does not.
        other = seen.setdefault(name.casefold(), name)
        if other != name or named.count(name) > 1:
            yield Finding("path", name[:200], f"the manifest names it twice ({other!r})")
    for table, entry in manifest.tables.items():
        if entry.file != f"data/{table}.parquet":
            yield Finding("path", entry.file[:200], f"is not where the table {table} belongs")
        elif entry.file not in manifest.files:
            yield Finding("manifest", entry.file, "the manifest lists no checksum of it")
        if entry.kind not in ("core", "add_on"):
            yield Finding("manifest", entry.file, f"is of an unknown kind {entry.kind!r}")
    if manifest.database.file != f"{manifest.name}.duckdb":
        yield Finding("path", manifest.database.file[:200], "is not the name of its database")
