"""The tables of a release: each read again, and that every row has its parent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.untrusted import RELEASED, physical_memory, reading
from routeyard.pipelines.release.database import LOCKED, after, ids_of
from routeyard.pipelines.release.derived_tables import (
    WIDE,
    OutcomeSplits,
    SplitContents,
    Summaries,
    blocks,
    columns_of,
    metered,
    numbered,
    wide_rows,
    wide_schema,
)
from routeyard.pipelines.release.manifest import Content, Contents, Finding, first_line
from routeyard.pipelines.release.tables import LARGE, ordered
from routeyard.schemas import CONTRACTS, OUTCOMES, StoredTable
from routeyard.schemas.contracts import register
from routeyard.schemas.errors import ContractError
from routeyard.schemas.release import FOLDER, Manifest, TableEntry

# Reads a table of a release again: contract, order and fingerprint, a part at a time.

#: Row groups of a large table that are read at a time, and the bytes at which fewer are.
_GROUPS, _BYTES = 8, 256 << 20


def reread(
    release: Path, name: str, entry: TableEntry, watch: Callable[[pa.Table], None] | None = None
) -> tuple[list[Finding], pa.Table | StoredTable | None]:
    """What is wrong with one table, and the table: large ones stay on disk.

    None in its place means that it cannot be read or breaks its contract.
    """
    contract = CONTRACTS[name]
    contents = Contents(contract.schema)
    rows, last, sound = 0, None, True
    held: list[pa.Table] = []
    try:
        for raw in _parts(release / entry.file):
            if lacks := [one for one in contract.column_names if one not in raw.column_names]:
                says = f"table {name!r} lacks column(s) {', '.join(lacks)}"
                return [Finding("contract", entry.file, says)], None
            part = contract.check(raw, where=entry.file, keyed=False)
            sorted_part, unique = ordered(contract, part)
            if not unique:
                contract.check(part, where=entry.file)  # says which keys are repeated
            sound = sound and sorted_part is part
            if sound:
                last = after(contract, part, last)
            contents.update(part)
            rows += part.num_rows
            if watch is not None:
                watch(part)
            if name not in LARGE:
                held.append(part)
    except (OSError, ValueError, pa.ArrowException) as error:
        says = f"cannot be read: {first_line(error)}"
        return [Finding("parquet", entry.file, says)], None
    except ContractError as error:
        return [Finding("contract", entry.file, error.what)], None
    findings = []
    if rows != entry.rows:
        says = f"has {rows:,} rows, the manifest says {entry.rows:,}"
        findings.append(Finding("rows", entry.file, says))
    if not sound:
        findings.append(Finding("order", entry.file, "its rows are not in the release's order"))
    if contents.full != entry.content:
        findings.append(Finding("content", entry.file, "says something else than its fingerprint"))
    elif contents.without_times != entry.content_without_times:
        findings.append(
            Finding("content", entry.file, "its fingerprint without times does not match")
        )
    if name in LARGE:
        return findings, StoredTable(release / entry.file)
    return findings, pa.concat_tables(held) if held else contract.empty()


def _parts(path: Path) -> Iterator[pa.Table]:
    file = pq.ParquetFile(path)
    groups = map(file.metadata.row_group, range(file.num_row_groups))
    sizes = [group.total_byte_size for group in groups]
    start = 0
    while start < len(sizes):
        after = start + 1
        while after < min(start + _GROUPS, len(sizes)) and sum(sizes[start : after + 1]) < _BYTES:
            after += 1
        yield file.read_row_groups(range(start, after))
        start = after
    if not sizes:
        yield file.read()


Tables = dict[str, pa.Table | StoredTable]

#: (child table, its columns, parent table that has the same): every child row needs its parent.
REFERENCES = (
    ("responses", ("query_id",), "queries"),
    ("responses", ("model_id",), "models"),
    ("verdicts", ("query_id", "model_id", "sample"), "responses"),
    ("labels", ("query_id",), "queries"),
    ("labels", ("model_id",), "models"),
    ("splits", ("query_id",), "queries"),
    ("model_splits", ("model_id",), "models"),
    ("embeddings", ("query_id",), "queries"),
    ("preferences", ("query_id",), "queries"),
    ("entropies", ("query_id", "model_id"), "labels"),
    ("signals", ("query_id", "model_id", "sample"), "responses"),
    ("steps", ("query_id", "model_id", "sample"), "responses"),
    ("hidden_states", ("query_id",), "queries"),
    ("images", ("query_id",), "queries"),
)


def check_tables(
    release: Path,
    manifest: Manifest,
    readable: set[str],
    tables: Tables,
    watch: Mapping[str, Callable[[pa.Table], None]] | None = None,
) -> Iterator[Finding]:
    """Findings in the tables; `tables` gets those that hold their contracts.

    Args:
        watch: Table → function that is given each part of it as it is read.
    """
    for name, entry in manifest.tables.items():
        if entry.file not in readable:
            continue
        if name not in CONTRACTS:
            yield Finding("contract", entry.file, f"there is no contract {name!r}")
            continue
        findings, table = reread(release, name, entry, (watch or {}).get(name))
        yield from findings
        if table is not None:
            tables[name] = table


def check_references(tables: Tables) -> Iterator[Finding]:
    """Rows whose parent is not there."""
    import duckdb

    # Joins of millions of ids go to the disk when they do not fit.
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '2GB'")
        connection.execute("SET temp_directory = ?", [tempfile.gettempdir()])
        for name, table in tables.items():
            register(connection, name, table)
        for child, columns, parent in REFERENCES:
            if child not in tables or parent not in tables:
                continue
            keys = ", ".join(f'"{column}"' for column in columns)
            orphans = f"SELECT DISTINCT {keys} FROM {child} ANTI JOIN {parent} USING ({keys})"
            rows = connection.execute(f"{orphans} ORDER BY ALL").fetchall()
            if rows:
                some = "; ".join("|".join(map(str, row)) for row in rows[:3])
                yield Finding(
                    "reference", child, f"{len(rows)} {'/'.join(columns)} not in {parent}: {some}"
                )


# Makes outcomes, wide matrix and summaries of a release once more, and compares.

_LONG = frozenset({"queries", "models", "labels"})


def recount(
    release: Path,
    manifest: Manifest,
    readable: set[str],
    tables: Mapping[str, pa.Table | StoredTable],
    *,
    own: bool,
) -> list[Finding]:
    """What differs from labels and responses; nothing where one of them is not sound.

    Args:
        own: The database holds nothing but the release's own definitions, so that its
            tables may be read.
    """
    whole = "responses" in tables or "responses" not in manifest.tables
    if not (tables.keys() >= _LONG and whole):
        return []
    queries = columns_of(tables["queries"], ["query_id", "task"])
    models = columns_of(tables["models"], ["model_id"])
    query_ids, names = ids_of(queries, "query_id"), ids_of(models, "model_id")
    responses = tables.get("responses")
    summaries = Summaries(queries.column("task"), len(names))
    wide, outcomes = Content(wide_schema(names.to_pylist())), Content(OUTCOMES.schema)
    splits = None
    if "splits" in tables:
        columns = columns_of(tables["splits"], ["scheme", "query_id", "split"])
        splits = SplitContents(OutcomeSplits(columns, query_ids))
    try:
        for block in blocks(
            release / manifest.tables["labels"].file,
            responses.path if isinstance(responses, StoredTable) else None,
            query_ids,
            names,
        ):
            ids = query_ids.slice(block.first, block.shape[0])
            wide.update(wide_rows(ids, block.score, names.to_pylist()))
            for part in block.rows():
                outcomes.update(part)
                if splits:
                    splits.update(part)
            summaries.add(block)
    except ContractError:
        return []  # a row without its query or model: `_references` names it
    findings = list(_repeated(release, WIDE, readable, wide.hexdigest()))
    if splits:
        findings += _by_split(release, manifest, readable, splits.digests())
    if "outcomes" in tables:
        entry = manifest.tables["outcomes"]
        if outcomes.hexdigest() != entry.content:
            says = "says something else than labels and responses"
            findings.append(Finding("content", entry.file, says))
        expected = summaries.tables()
        path = responses.path if isinstance(responses, StoredTable) else None
        expected["metered"] = metered(path, names)
        findings += _files(release, readable, expected)
        if own:
            findings += _summaries(release / manifest.database.file, expected)
    return findings


def _by_split(
    release: Path, manifest: Manifest, readable: set[str], expected: Mapping[str, str]
) -> Iterator[Finding]:
    there = {name for name in manifest.files if name.startswith(f"{FOLDER}/")}
    for name in sorted(there ^ expected.keys()):
        says = "is missing" if name in expected else "is a split that the release does not have"
        yield Finding("file", name, says)
    for name in sorted(there & expected.keys()):
        yield from _repeated(release, name, readable, expected[name])


def _repeated(release: Path, name: str, readable: set[str], expected: str) -> Iterator[Finding]:
    """A file that says once more what the tables say, against the fingerprint of their values."""
    if name not in readable:
        return
    try:
        file = pq.ParquetFile(release / name)
        found = Content(file.schema_arrow)
        for batch in file.iter_batches(1 << 17):
            found.update(pa.Table.from_batches([batch]))
    except (OSError, ValueError, pa.ArrowException) as error:
        yield Finding("parquet", name, f"cannot be read: {first_line(error)}")
        return
    if found.hexdigest() != expected:
        yield Finding("content", name, "says something else than the release's tables")


def _files(
    release: Path, readable: set[str], expected: Mapping[str, pa.Table]
) -> Iterator[Finding]:
    for name, table in expected.items():
        file = numbered(name)
        if file not in readable:
            yield Finding("file", file, "is missing, or not what the manifest sealed")
            continue
        try:
            found = pq.read_table(release / file)
        except (OSError, ValueError, pa.ArrowException) as error:
            yield Finding("parquet", file, f"cannot be read: {first_line(error)}")
            continue
        if not _same(found, table):
            yield Finding("content", file, "does not add up")


def _summaries(path: Path, expected: Mapping[str, pa.Table]) -> Iterator[Finding]:
    """The database's own summaries, read in the limited process."""
    for name, table in expected.items():
        try:
            with reading(path, RELEASED) as (worker, _, limits):
                limits = replace(limits, memory=physical_memory())
                # One row more says that there are too many.
                stream = worker.stream(
                    numbered_rows, str(path.absolute()), name, table.num_rows + 1, limits=limits
                )
                with closing(stream):
                    found = _table(list(stream))
        except (SourceError, OSError) as error:
            yield Finding("database", path.name, f"cannot be read: {first_line(error)}")
            return
        if not _same(found, table):
            yield Finding("database", path.name, f"its numbered.{name} does not add up")


def numbered_rows(path: str, name: str, most: int) -> Iterator[Any]:
    """Schema and rows of a summary in a database; called in the limited process.

    Only of a file that holds the release's own definitions.
    """
    with duckdb.connect(path, read_only=True, config=dict(LOCKED)) as connection:
        rows = connection.sql(f"FROM numbered.{name} LIMIT {int(most)}").to_arrow_reader(1 << 16)
        yield rows.schema
        yield from rows


def _table(pieces: list[Any]) -> pa.Table:
    batches = [piece for piece in pieces if isinstance(piece, pa.RecordBatch)]
    (schema,) = [piece for piece in pieces if isinstance(piece, pa.Schema)][:1]
    return pa.Table.from_batches(batches, schema)


def _same(found: pa.Table, expected: pa.Table) -> bool:
    """Equal values in equal order; sums may differ in their last digits."""
    if (found.num_rows, found.column_names) != (expected.num_rows, expected.column_names):
        return False
    for name in found.column_names:
        a, b = found.column(name), expected.column(name)
        if a.null_count != b.null_count:
            return False
        if pa.types.is_floating(b.type):
            x, y = (v.to_numpy(zero_copy_only=False) for v in (a, b))
            if not np.allclose(x, y, rtol=1e-9, atol=0, equal_nan=True):
                return False
        elif not a.cast(b.type).equals(b):
            return False
    return True
