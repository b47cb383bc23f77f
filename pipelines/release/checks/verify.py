"""Checks a release against itself: manifest, files, tables, database, card, signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from pipelines.errors import SourceError
from pipelines.release.checks.card import card_facts, check_card
from pipelines.release.checks.database import check_database
from pipelines.release.checks.files import check_files
from pipelines.release.checks.recount import recount
from pipelines.release.checks.seal import check_seal
from pipelines.release.checks.tables import REFERENCES, Tables, check_references, check_tables
from pipelines.release.finding import Finding, first_line
from pipelines.release.manifest import MANIFEST, read_manifest
from pipelines.release.signature import check_signature
from pipelines.release.yank import check_mark
from schemas import StoredTable

__all__ = ["REFERENCES", "Finding", "card_facts", "verify_release"]


def verify_release(
    release: Path,
    *,
    render_card: Callable[[Mapping[str, pa.Table | StoredTable], Mapping[str, object]], str],
    signer: str | None = None,
) -> list[Finding]:
    """Everything that is wrong with a release; an empty list means it holds.

    Nothing in the release is believed: names in the manifest may lead outside, files
    may be links or devices, the database may define anything. Each is a finding,
    never an error, and nothing outside the release is opened.

    Args:
        render_card: The card is rendered again from the data and compared, so
            every number in it is recomputed.
        signer: Public key (text or file) whose signature of the manifest is required.
    """
    if (release / MANIFEST).is_symlink():
        return [Finding("path", MANIFEST, "is a symbolic link; a release holds regular files only")]
    try:
        manifest = read_manifest(release)
    except SourceError as error:
        return [Finding("manifest", MANIFEST, error.what)]
    findings = list(check_seal(manifest))
    readable: set[str] = set()
    tables: Tables = {}
    findings += check_files(release, manifest, readable)
    findings += check_tables(release, manifest, readable, tables)
    foreign = list(check_database(release, manifest, tables))
    findings += foreign
    findings += _asked(lambda: recount(release, manifest, readable, tables, own=not foreign))
    findings += _asked(lambda: check_references(tables))
    findings += _asked(lambda: check_card(release, manifest, readable, tables, render_card))
    findings += check_mark(release)
    if signer is not None:
        findings += check_signature(release, signer)
    return findings


def _asked(check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What a check finds that asks DuckDB; Arrow reads files that DuckDB does not."""
    import duckdb

    findings: list[Finding] = []
    try:
        for finding in check():
            findings.append(finding)  # noqa: PERF402  what was found before an error counts
    except duckdb.Error as error:
        says = f"a table of it cannot be read by DuckDB: {first_line(error)}"
        findings.append(Finding("parquet", "data", says))
    return findings
