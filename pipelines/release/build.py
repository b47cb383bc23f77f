"""Writes a release: tables, database, card and manifest, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import VersionExists
from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.staging import place, staging
from routeyard.pipelines.release.checks import FILE, checks_file, stated_text
from routeyard.pipelines.release.database import (
    Streamed,
    write_checksum,
    write_database,
    write_table,
)
from routeyard.pipelines.release.derived_tables import derive
from routeyard.pipelines.release.manifest import (
    MANIFEST,
    code_version,
    combine,
    existing,
    next_version,
    read_manifest,
)
from routeyard.pipelines.release.tables import IN_DATABASE, released_names
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.release import (
    WITHHELD,
    DatabaseEntry,
    FileEntry,
    Manifest,
    TableEntry,
    digest_of,
)

# Sources whose licence forbids passing their text on: ids and labels stay, the text goes.

#: What is replaced in rows that belong to such a source. Answers and judges' reasons quote the
#: question, so they go too; tokens, costs, scores and ids stay.
_REPLACED: Mapping[str, Mapping[str, Any]] = {
    "queries": {
        "question": WITHHELD,
        "prompt": WITHHELD,
        "choices": [],
        "references": [],
        "metadata": json.dumps({}),
    },
    "responses": {"text": WITHHELD, "logprobs": None, "graded_against": None},
    "steps": {"said": WITHHELD, "queries": [], "found": [], "error": None},
    "verdicts": {
        "extracted": None,
        "reason": WITHHELD,
        "span_start": None,
        "span_end": None,
    },
    "preferences": {"prompt": WITHHELD, "response_a": WITHHELD, "response_b": WITHHELD},
}


@dataclass(frozen=True)
class Withheld:
    """The queries whose text may not be passed on."""

    ids: pa.Array

    @classmethod
    def of(
        cls, queries: Iterable[pa.Table], sources: Iterable[Mapping[str, Any]]
    ) -> Withheld | None:
        """Those of sources that say `redistribute_text: false`; None when no source does.

        Args:
            queries: the table in parts.
        """
        closed = [s["source"] for s in sources if s.get("redistribute_text") is False]
        if not closed:
            return None
        names = pa.array(closed, pa.string())
        results = [
            part.column("query_id").filter(pc.is_in(part.column("source"), value_set=names))
            for part in queries
        ]
        chunks = [chunk for ids in results for chunk in ids.chunks]
        return cls(pa.concat_arrays([pa.array([], pa.string()), *chunks]))

    def replace(self, name: str, table: pa.Table) -> pa.Table:
        """A table, or a part of one, without their text."""
        if name not in _REPLACED:
            return table
        return _replace(CONTRACTS[name].schema, table, self.ids, _REPLACED[name])


def _replace(
    schema: pa.Schema, table: pa.Table, ids: pa.Array, replaced: Mapping[str, Any]
) -> pa.Table:
    rows = pc.is_in(table.column("query_id"), value_set=ids)
    for column, value in replaced.items():
        field = schema.field(column)
        fill = pa.scalar(value, type=field.type)
        old = table.column(column)
        if pa.types.is_list(field.type):
            # if_else has no kernel for lists of text in every case: build them from Python.
            values = [
                value if hide else item
                for item, hide in zip(old.to_pylist(), rows.to_pylist(), strict=True)
            ]
            new = pa.chunked_array([pa.array(values, type=field.type)])
        else:
            keep_null = pc.is_null(old)
            new = pc.if_else(pc.and_(rows, pc.invert(keep_null)), fill, old)
        table = table.set_column(table.schema.get_field_index(column), field, new)
    return table


#: Text of `README.md` of tables and facts; `routeyard.datacards.card.render` is one.
RenderCard = Callable[[Mapping[str, pa.Table | StoredTable], Mapping[str, Any]], str]
#: Further files of the release, by path; `routeyard.datacards.files.render` is one.
RenderFiles = Callable[
    [Mapping[str, pa.Table | StoredTable], Mapping[str, Any]], Mapping[str, bytes]
]


@dataclass(frozen=True, slots=True)
class Released:
    """Folder of a release, and whether this call made it."""

    path: Path
    status: Literal["created", "unchanged"]
    fingerprint: str


def write_release(
    tables: Mapping[str, pa.Table | Streamed],
    *,
    recipe: Mapping[str, Any],
    root: Path,
    render_card: RenderCard,
    render_files: RenderFiles | None = None,
    figures: Mapping[str, Any] | None = None,
    fingerprints: Mapping[str, str] | None = None,
    sources: Sequence[Mapping[str, Any]] = (),
    waivers: Sequence[Mapping[str, str]] = (),
    code: str | None = None,
) -> Released:
    """Write `root/<name>/<version>/` from tables in contract form.

    Every table is checked against its contract, its rows are put in order, and
    text that a source's licence keeps back is withheld. `outcomes` is made from labels
    and responses. Two calls with the same arguments write byte-identical files, except
    the `.duckdb` and its checksum, whether a table is given whole or in parts.

    Args:
        tables: Contract name → table, or `Streamed` for one larger than memory (queries,
            labels, responses, verdicts); an unknown name is an error.
        recipe: The recipe with every default, JSON-ready and without paths of this machine.
        root: The `releases` folder of the workspace.
        render_card: Called with the released tables and the manifest's facts.
        render_files: Further files (path → bytes): plots, Croissant metadata.
        figures: JSON-ready figures of the stages.
        fingerprints: Stage → fingerprint.
        sources: Provenance of each source, as the ingest stage gives it.
        waivers: `{gate, reason}` of each gate that was waived.
        code: Version of the code; None takes that of the installed distribution.

    Raises:
        VersionExists: this version exists with other content.
        ContractError: a table breaks its contract.
        DiskFull: no room; nothing is left behind.
    """
    name, version = str(recipe["name"]), str(recipe["version"])
    target = root / name / version
    with staging(target) as folder:
        entries, released = _write_tables(tables, sources, folder)
        entries["outcomes"] = derive(released, folder)
        released["outcomes"] = StoredTable(folder / entries["outcomes"].file)
        entries = {table: entries[table] for table in released_names(list(entries))}
        released = {table: released[table] for table in entries}
        contents = {table: entry.content for table, entry in entries.items()}
        timeless = {table: entry.content_without_times for table, entry in entries.items()}
        facts: dict[str, Any] = {
            "name": name,
            "version": version,
            "recipe": dict(recipe),
            "stages": dict(sorted((fingerprints or {}).items())),
            "sources": [dict(source) for source in sources],
            "waivers": [dict(waiver) for waiver in waivers],
            "figures": dict(figures or {}),
            "code_version": code or code_version(),
            "content": combine(contents),
            "content_without_times": combine(timeless),
        }
        files = _entries(folder)
        shown = {**facts, "files": {path: entry.model_dump() for path, entry in files.items()}}
        further = {FILE: checks_file(files).encode()}
        further |= render_files(released, shown) if render_files else {}
        card = render_card(released, {**shown, "further": sorted(further)})
        (folder / "README.md").write_text(card, encoding="utf-8", newline="\n")
        parts = [name, version, facts["content"], facts["recipe"], facts["waivers"], card]
        fingerprint = digest_of(parts)
        if target.exists():
            return _settle(target, fingerprint, entries, version)
        for path, data in further.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        database = folder / f"{name}.duckdb"
        held = combine({table: entries[table].content for table in IN_DATABASE})
        manifest = Manifest(
            **facts,
            fingerprint=fingerprint,
            tables=entries,
            files=_entries(folder, known=files),
            database=DatabaseEntry(file=database.name, tables=list(IN_DATABASE), content=held),
        ).sealed()
        small = {table: rows for table, rows in released.items() if table in IN_DATABASE}
        write_database(small, database, folder, stated_text(manifest), card)
        write_checksum(database)
        (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8", newline="\n")
        try:
            place(folder, target)
        except FileExistsError:  # another build made it while this one wrote
            return _settle(target, fingerprint, entries, version)
    return Released(target, "created", fingerprint)


def _write_tables(
    tables: Mapping[str, pa.Table | Streamed], sources: Sequence[Mapping[str, Any]], folder: Path
) -> tuple[dict[str, TableEntry], dict[str, pa.Table | StoredTable]]:
    """Write every table; small ones come back in memory, large ones as their files.

    Small tables are always written, empty if need be: a query can rely on them.
    """
    empty = {table: CONTRACTS[table].empty() for table in IN_DATABASE}
    inputs = {**empty, **{name: rows for name, rows in tables.items() if name != "outcomes"}}
    if unknown := sorted(inputs.keys() - released_names(list(inputs))):
        raise KeyError(f"there is no contract {unknown[0]!r}")
    (folder / "data").mkdir()
    queries = inputs["queries"]
    parts = [queries] if isinstance(queries, pa.Table) else queries.parts()
    withheld = Withheld.of(parts, sources)
    entries: dict[str, TableEntry] = {}
    released: dict[str, pa.Table | StoredTable] = {}
    for name in released_names(list(inputs)):
        change = partial(withheld.replace, name) if withheld else None
        entries[name], whole = write_table(CONTRACTS[name], inputs[name], folder, change=change)
        released[name] = StoredTable(folder / entries[name].file) if whole is None else whole
    return entries, released


def _entries(folder: Path, *, known: Mapping[str, FileEntry] | None = None) -> dict[str, FileEntry]:
    """Every file with its checksum; what is `known` is not read again."""
    names = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return {
        name: (known or {}).get(name) or FileEntry(sha256=sha256(path), size=path.stat().st_size)
        for name, path in names.items()
    }


def _settle(
    target: Path, fingerprint: str, entries: Mapping[str, TableEntry], version: str
) -> Released:
    there = read_manifest(target)
    if there.fingerprint == fingerprint:
        return Released(target, "unchanged", fingerprint)
    following = next_version(version, there.tables, entries, existing(target.parent))
    raise VersionExists(
        f"release {there.name} {version} exists with other content",
        where=str(target),
        next_step=f"set 'version: {following}' in the recipe; a released version is never changed",
    )
