"""Checks a release against itself: files, contracts, references between tables, the card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from pipelines.errors import SourceError
from pipelines.files import sha256
from pipelines.release.database import database_content
from pipelines.release.fingerprint import combine, content
from pipelines.release.manifest import MANIFEST, code_version, read_manifest
from pipelines.release.matrix import WIDE, wide
from pipelines.release.tables import contract_of, in_order
from schemas import CONTRACTS
from schemas.errors import ContractError
from schemas.manifest import MEASURED_COLUMNS, Manifest, digest_of


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold: which check, where, and what it found."""

    check: str
    where: str
    says: str


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
    release: Path, *, render_card: Callable[[Mapping[str, pa.Table], Mapping[str, object]], str]
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
    tables: dict[str, pa.Table] = {}
    findings += _tables(release, manifest, tables)
    findings += _wide(release, manifest, tables)
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


def _tables(release: Path, manifest: Manifest, tables: dict[str, pa.Table]) -> Iterator[Finding]:
    import pyarrow.parquet as pq

    for name, entry in manifest.tables.items():
        path = release / entry.file
        if not path.is_file():
            continue
        if name not in CONTRACTS:
            yield Finding("contract", entry.file, f"there is no contract {name!r}")
            continue
        try:
            raw = pq.read_table(path)
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            yield Finding("parquet", entry.file, f"cannot be read: {str(error).splitlines()[0]}")
            continue
        try:
            table = contract_of(name).check(raw, where=entry.file)
        except ContractError as error:
            yield Finding("contract", entry.file, error.what)
            continue
        tables[name] = table
        if table.num_rows != entry.rows:
            says = f"has {table.num_rows:,} rows, the manifest says {entry.rows:,}"
            yield Finding("rows", entry.file, says)
        if in_order(contract_of(name), table) is not table:
            yield Finding("order", entry.file, "its rows are not in the release's order")
        if content(table) != entry.content:
            yield Finding("content", entry.file, "says something else than its fingerprint")
        elif content(table, without=MEASURED_COLUMNS) != entry.content_without_times:
            yield Finding("content", entry.file, "its fingerprint without times does not match")


def _wide(release: Path, manifest: Manifest, tables: Mapping[str, pa.Table]) -> Iterator[Finding]:
    import pyarrow.parquet as pq

    path = release / WIDE
    if WIDE not in manifest.files or not path.is_file() or not tables.keys() >= _LONG:
        return
    try:
        same = pq.read_table(path).equals(wide(tables))
    except (OSError, pa.ArrowInvalid) as error:
        yield Finding("parquet", WIDE, f"cannot be read: {str(error).splitlines()[0]}")
        return
    if not same:
        yield Finding("content", WIDE, "says something else than the long table of labels")


_LONG = frozenset({"queries", "models", "labels"})


def _references(tables: Mapping[str, pa.Table]) -> Iterator[Finding]:
    import duckdb

    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
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
    tables: Mapping[str, pa.Table],
    render_card: Callable[[Mapping[str, pa.Table], Mapping[str, object]], str],
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
