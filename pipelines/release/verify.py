"""Checks a release against itself: files, contracts, references between tables, the card."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from pipelines.errors import SourceError
from pipelines.files import sha256
from pipelines.release.checks.finding import Finding
from pipelines.release.checks.recount import recount
from pipelines.release.checks.reread import reread
from pipelines.release.database import database_content
from pipelines.release.fingerprint import combine
from pipelines.release.manifest import MANIFEST, code_version, read_manifest
from schemas import CONTRACTS, Stored
from schemas.errors import ContractError
from schemas.manifest import Manifest, digest_of
from schemas.stored import register

Tables = dict[str, pa.Table | Stored]
RenderCard = Callable[[Mapping[str, pa.Table | Stored], Mapping[str, object]], str]

#: (child table, its columns) → (parent table, its columns); every child row needs its parent.
REFERENCES = (
    ("responses", ("query_id",), "queries", ("query_id",)),
    ("responses", ("model_id",), "models", ("model_id",)),
    ("verdicts", ("query_id", "model_id", "sample"), "responses", None),
    ("labels", ("query_id",), "queries", ("query_id",)),
    ("labels", ("model_id",), "models", ("model_id",)),
    ("splits", ("query_id",), "queries", ("query_id",)),
    ("model_splits", ("model_id",), "models", ("model_id",)),
    ("embeddings", ("query_id",), "queries", ("query_id",)),
    ("preferences", ("query_id",), "queries", ("query_id",)),
)


def verify_release(
    release: Path,
    *,
    render_card: RenderCard,
) -> list[Finding]:
    """Everything that is wrong with a release; an empty list means it holds.

    Args:
        render_card: The card is rendered again from the data and compared, so
            every number in it is recomputed.
    """
    try:
        manifest = read_manifest(release)
    except SourceError as error:
        return [Finding("manifest", MANIFEST, error.what)]
    findings = list(_manifest(release, manifest))
    findings += _files(release, manifest)
    tables: Tables = {}
    findings += _tables(release, manifest, tables)
    findings += recount(release, manifest, tables)
    findings += _references(tables)
    findings += _database(release, manifest)
    findings += _card(release, manifest, tables, render_card)
    return findings


def _manifest(release: Path, manifest: Manifest) -> Iterator[Finding]:
    if manifest.digest != manifest.expected_digest():
        yield Finding("manifest", MANIFEST, "was edited: its digest does not match what it says")
    if (manifest.name, manifest.version) != (
        manifest.recipe.get("name"),
        manifest.recipe.get("version"),
    ):
        yield Finding("manifest", MANIFEST, "name or version differs from the recipe's")
    parts = {name: entry.content for name, entry in manifest.tables.items()}
    if manifest.content != combine(parts):
        yield Finding("manifest", MANIFEST, "the content fingerprint is not that of its tables")


def _files(release: Path, manifest: Manifest) -> Iterator[Finding]:
    add_ons = {entry.file for entry in manifest.tables.values() if entry.kind == "add_on"}
    listed = {*manifest.files, manifest.database.file, MANIFEST}
    for name, entry in manifest.files.items():
        path = release / name
        if not path.is_file():
            if name not in add_ons:
                yield Finding("file", name, "is missing")
        elif path.stat().st_size != entry.size:
            size = path.stat().st_size
            yield Finding("file", name, f"has {size:,} bytes, the manifest says {entry.size:,}")
        elif sha256(path) != entry.sha256:
            yield Finding("file", name, "has another SHA-256 than the manifest says")
    for path in sorted(release.rglob("*")):
        name = path.relative_to(release).as_posix()
        if path.is_file() and name not in listed and name not in BESIDE:
            yield Finding("file", name, "lies in the release but is not in the manifest")


#: Written beside a release after it was sealed.
BESIDE = frozenset({"YANKED.json", ".gitattributes"})


def _tables(release: Path, manifest: Manifest, tables: Tables) -> Iterator[Finding]:
    for name, entry in manifest.tables.items():
        if not (release / entry.file).is_file():
            continue
        if name not in CONTRACTS:
            yield Finding("contract", entry.file, f"there is no contract {name!r}")
            continue
        findings, table = reread(release, name, entry)
        yield from findings
        if table is not None:
            tables[name] = table


def _references(tables: Tables) -> Iterator[Finding]:
    import duckdb

    # Joins of millions of ids go to the disk when they do not fit.
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '2GB'")
        connection.execute("SET temp_directory = ?", [tempfile.gettempdir()])
        for name, table in tables.items():
            register(connection, name, table)
        for child, columns, parent, parent_columns in REFERENCES:
            if child not in tables or parent not in tables:
                continue
            keys = parent_columns or columns
            on = " AND ".join(f'c."{a}" = p."{b}"' for a, b in zip(columns, keys, strict=True))
            shown = ", ".join(f'c."{column}"' for column in columns)
            rows = connection.execute(
                f"SELECT DISTINCT {shown} FROM {child} c ANTI JOIN {parent} p ON {on} ORDER BY ALL"
            ).fetchall()
            if rows:
                some = "; ".join("|".join(map(str, row)) for row in rows[:3])
                yield Finding(
                    "reference", child, f"{len(rows)} {'/'.join(columns)} not in {parent}: {some}"
                )


def _database(release: Path, manifest: Manifest) -> Iterator[Finding]:
    import duckdb

    name = manifest.database.file
    if not (release / name).is_file():
        yield Finding("file", name, "is missing")
        return
    try:
        whole, each = database_content(release / name, manifest.database.tables)
    except (duckdb.Error, ContractError) as error:
        yield Finding("database", name, f"cannot be read: {str(error).splitlines()[0]}")
        return
    for table, found in each.items():
        if table in manifest.tables and found != manifest.tables[table].content:
            yield Finding("database", name, f"its table {table} differs from the Parquet file's")
    if whole != manifest.database.content:
        yield Finding(
            "database", name, "its content has another fingerprint than the manifest says"
        )


def _card(
    release: Path,
    manifest: Manifest,
    tables: Mapping[str, pa.Table | Stored],
    render_card: RenderCard,
) -> Iterator[Finding]:
    path = release / "README.md"
    expected = {n for n, e in manifest.tables.items() if e.kind == "core"}
    if not path.is_file() or not expected <= tables.keys():
        return
    try:
        card = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        yield Finding("card", "README.md", "is not UTF-8")
        return
    fingerprint = digest_of(
        [
            manifest.name,
            manifest.version,
            manifest.content,
            manifest.recipe,
            [waiver.model_dump() for waiver in manifest.waivers],
            card,
        ]
    )
    if fingerprint != manifest.fingerprint:
        yield Finding("fingerprint", MANIFEST, "is not that of this recipe, card and content")
    if tables.keys() != manifest.tables.keys() or manifest.code_version != code_version():
        return  # an add-on was not fetched, or the card's template was another one
    fresh = render_card(tables, card_facts(manifest))
    for number, (old, new) in enumerate(
        zip(card.splitlines(), fresh.splitlines(), strict=False), start=1
    ):
        if old != new:
            says = f"line {number} says {old[:80]!r}, the data say {new[:80]!r}"
            yield Finding("card", "README.md", says)
            return
    if card != fresh:
        yield Finding("card", "README.md", "differs in length from what the data give")


_FACTS = (
    "name",
    "version",
    "recipe",
    "stages",
    "sources",
    "waivers",
    "figures",
    "code_version",
    "content",
    "content_without_times",
)


def card_facts(manifest: Manifest) -> dict[str, object]:
    """What `write_release` gave the card's renderer, read back from the manifest."""
    facts = manifest.model_dump(mode="json")
    files = {name: entry for name, entry in facts["files"].items() if name.startswith("data/")}
    further = sorted(manifest.files.keys() - files.keys() - {"README.md"})
    return {**{key: facts[key] for key in _FACTS}, "files": files, "further": further}
