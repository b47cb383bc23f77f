"""Makes outcomes, wide matrix and summaries of a release once more, and compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.io.untrusted import RELEASED, physical_memory, reading
from routeyard.pipelines.release.database import LOCKED
from routeyard.pipelines.release.derived_tables import (
    WIDE,
    OutcomeSplits,
    SplitContents,
    columns_of,
    numbered,
    wide_rows,
    wide_schema,
)
from routeyard.pipelines.release.finding import Finding, first_line
from routeyard.pipelines.release.fingerprint import Content
from routeyard.pipelines.release.outcomes import blocks
from routeyard.pipelines.release.summaries import Summaries, metered
from routeyard.pipelines.release.write_table import ids_of
from routeyard.schemas import OUTCOMES, StoredTable
from routeyard.schemas.errors import ContractError
from routeyard.schemas.manifest import Manifest
from routeyard.schemas.split_files import FOLDER

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
