"""The tables of a release: each read again, and that every row has its parent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.sql import runner
from routeyard.pipelines.release.database import after
from routeyard.pipelines.release.derived_tables import derive
from routeyard.pipelines.release.manifest import Contents, Finding, first_line
from routeyard.pipelines.release.tables import LARGE, ROWS_PER_GROUP, ordered
from routeyard.schemas import CONTRACTS, StoredTable
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
    with runner(tables=tables) as run:
        for child, columns, parent in REFERENCES:
            if child not in tables or parent not in tables:
                continue
            keys = ", ".join(columns)
            orphans = f"SELECT DISTINCT {keys} FROM {child} ANTI JOIN {parent} USING ({keys})"
            rows = run.connection.execute(f"{orphans} ORDER BY ALL").fetchall()
            if rows:
                some = "; ".join("|".join(map(str, row)) for row in rows[:3])
                says = f"{len(rows)} {'/'.join(columns)} not in {parent}: {some}"
                yield Finding("reference", child, says)


# Derives outcomes, wide matrix and summaries of a release once more, and compares.


def derived_again(tables: Tables, folder: Path) -> bool:
    """Whether outcomes, wide matrix and summaries could be made again, into a folder."""
    if not {"queries", "models", "labels", "splits"} <= tables.keys():
        return False
    derive(tables, folder)
    return True


def check_derived(
    release: Path, manifest: Manifest, readable: set[str], fresh: Path
) -> Iterator[Finding]:
    """Findings in files that say once more what labels and responses say.

    Args:
        fresh: Folder with the same files, made again.
    """
    made = {path.relative_to(fresh).as_posix() for path in fresh.rglob("*.parquet")}
    split = {name for name in manifest.files if name.startswith(f"{FOLDER}/")}
    for name in sorted(split - made):
        yield Finding("file", name, "is a split that the release does not have")
    for name in sorted(made):
        if name not in manifest.files:
            yield Finding("file", name, "is missing")
        elif name in readable and sha256(fresh / name) != manifest.files[name].sha256:
            yield from _says_otherwise(release, fresh, name)


def _says_otherwise(release: Path, fresh: Path, name: str) -> Iterator[Finding]:
    """A finding where other bytes are other values, too: another library writes other bytes."""
    try:
        with pq.ParquetFile(release / name) as file, pq.ParquetFile(fresh / name) as right:
            sizes = [one.metadata.num_rows for one in (file, right)]
            pairs = zip(*(one.iter_batches(ROWS_PER_GROUP) for one in (file, right)), strict=False)
            equal = sizes[0] == sizes[1] and all(
                same_values(*(pa.Table.from_batches([one]) for one in pair)) for pair in pairs
            )
    except (OSError, ValueError, pa.ArrowException) as error:
        yield Finding("parquet", name, f"cannot be read: {first_line(error)}")
        return
    if not equal:
        yield Finding("content", name, "says something else than labels and responses")


def same_values(found: pa.Table, expected: pa.Table) -> bool:
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
