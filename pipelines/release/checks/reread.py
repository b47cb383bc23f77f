"""Reads a table of a release again: contract, order and fingerprint, a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.release.finding import Finding, first_line
from routeyard.pipelines.release.fingerprint import Contents
from routeyard.pipelines.release.tables import LARGE, ordered
from routeyard.pipelines.release.write_table import after
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.errors import ContractError
from routeyard.schemas.manifest import TableEntry

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
