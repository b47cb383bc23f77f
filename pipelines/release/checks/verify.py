"""Checks a release against itself: manifest, files, tables, database, card, signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.release.checks.card import card_facts, check_card
from routeyard.pipelines.release.checks.database import check_database
from routeyard.pipelines.release.checks.files import check_files
from routeyard.pipelines.release.checks.recount import recount
from routeyard.pipelines.release.checks.seal import check_seal
from routeyard.pipelines.release.checks.tables import (
    REFERENCES,
    Tables,
    check_references,
    check_tables,
)
from routeyard.pipelines.release.finding import Finding, first_line
from routeyard.pipelines.release.manifest import MANIFEST, read_manifest
from routeyard.pipelines.release.signature import check_signature
from routeyard.pipelines.release.yank import check_mark
from routeyard.schemas import StoredTable
from routeyard.schemas.manifest import Manifest

__all__ = ["REFERENCES", "Finding", "card_facts", "verify_release"]

RenderCard = Callable[[Mapping[str, pa.Table | StoredTable], Mapping[str, object]], str]


@dataclass
class Verification:
    """A release under verification, and what earlier checks found out for later ones.

    Attributes:
        readable: Files that are what the manifest sealed (`check_files`).
        tables: Tables that hold their contracts (`check_tables`).
        own: The database holds nothing but the release's own definitions (`check_database`).
        watch: Table → function that is given each part of it as it is read.
        unchecked: Lines of the card that nothing could be compared with.
    """

    release: Path
    manifest: Manifest
    render_card: RenderCard
    signer: str | None
    readable: set[str] = field(default_factory=set)
    tables: Tables = field(default_factory=dict)
    own: bool = False
    watch: dict[str, Callable[[pa.Table], None]] = field(default_factory=dict)
    unchecked: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, release: Path, render_card: RenderCard, signer: str | None) -> Verification:
        """A release whose manifest can be read (`unreadable`)."""
        return cls(release, read_manifest(release), render_card, signer)


def unreadable(release: Path) -> list[Finding]:
    """Why the manifest cannot be read; empty where it can."""
    if (release / MANIFEST).is_symlink():
        return [Finding("path", MANIFEST, "is a symbolic link; a release holds regular files only")]
    try:
        read_manifest(release)
    except SourceError as error:
        return [Finding("manifest", MANIFEST, error.what)]
    return []


def _database(run: Verification) -> Iterator[Finding]:
    findings = list(check_database(run.release, run.manifest, run.tables))
    # A link is a finding of `check_files`: where it leads to was not looked at.
    run.own = not findings and not (run.release / run.manifest.database.file).is_symlink()
    yield from findings


#: Every check in order; a later one reads what the earlier ones found to be sound.
CHECKS: tuple[Callable[[Verification], Iterable[Finding]], ...] = (
    lambda run: check_seal(run.manifest),
    lambda run: check_files(run.release, run.manifest, run.readable),
    lambda run: check_tables(run.release, run.manifest, run.readable, run.tables, run.watch),
    _database,
    lambda run: recount(run.release, run.manifest, run.readable, run.tables, own=run.own),
    lambda run: check_references(run.tables),
    lambda run: check_card(
        run.release, run.manifest, run.readable, run.tables, run.render_card, run.unchecked
    ),
    lambda run: check_mark(run.release),
    lambda run: () if run.signer is None else check_signature(run.release, run.signer),
)


def verify_release(
    release: Path, *, render_card: RenderCard, signer: str | None = None
) -> list[Finding]:
    """Everything that is wrong with a release; an empty list means that it is sound.

    Nothing in the release is trusted: names in the manifest may lead outside, files
    may be links or devices, the database may define anything. Each is a finding,
    never an error, and nothing outside the release is opened.

    Args:
        render_card: The card is rendered again from the data and compared, so
            every number in it is recomputed.
        signer: Public key (text or file) whose signature of the manifest is required.
    """
    if found := unreadable(release):
        return found
    return list(check(Verification.of(release, render_card, signer)))


def check(run: Verification) -> Iterator[Finding]:
    """Findings of every check, in order."""
    import duckdb

    for one in CHECKS:
        try:
            yield from one(run)
        except duckdb.Error as error:  # Arrow reads files that DuckDB does not
            says = f"a table of it cannot be read by DuckDB: {first_line(error)}"
            yield Finding("parquet", "data", says)
