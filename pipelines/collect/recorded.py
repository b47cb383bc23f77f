"""The `recorded` provider: responses that someone already has become `responses`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.collect.recorded_file import RecordedFileReader, few
from routeyard.pipelines.collect.recorded_row import RecipeQuestion
from routeyard.pipelines.collect.repeated_rows import Key, RepeatedRows
from routeyard.pipelines.errors import RecordedError, did_you_mean
from routeyard.pipelines.io import files, named_files
from routeyard.pipelines.mapping.fields import Sparse
from routeyard.schemas import RESPONSES
from routeyard.schemas.recipe import Recorded

_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class RecordedImport:
    """Responses in key order; per file, where they came from; and what to report about them.

    Attributes:
        places: (query_id, model_id, sample) → file and row of the answer.
    """

    responses: pa.Table
    provenance: list[dict[str, Any]]
    notes: list[str]
    places: Mapping[Key, str]


def import_recorded(
    queries: pa.Table, models: pa.Table, entries: Sequence[Recorded], *, base: Path
) -> RecordedImport:
    """Read recorded responses and match them with queries by `source_id`.

    A row without text and without score is an answer that is missing: it makes
    no response and is counted. Rows about questions that the recipe does not
    ask, keys that a row leaves out and prompts that ask something else are
    counted too, and said in `notes`. A cost that the recording does not state is
    tokens × the pool's price, where both are known.

    Raises:
        RecordedError: responses occur more than once and `duplicates` does not say which
            counts, or one names a model outside the pool, was given to another question,
            or no row matches a question.
        RecipeError: a mapping names a column that no row has.
        SourceError: a file is missing or damaged.
    """
    pool = {row["model_id"]: Price.of_row(row) for row in models.to_pylist()}
    repeats = RepeatedRows()
    batches: list[pa.RecordBatch] = []
    provenance: list[dict[str, Any]] = []
    notes: list[str] = []
    readers: list[RecordedFileReader] = []
    sparse_notes: list[str] = []
    for entry in entries:
        index, sparse = (
            _index(queries, entry),
            Sparse(entry.fields.model_dump(exclude_none=True).values()),
        )
        for path in named_files.expand(entry.path, base=base, where="collect.recorded"):
            reader = RecordedFileReader(entry, index, pool, repeats, path, sparse)
            rows: list[Mapping[str, Any]] = []
            for row in reader.rows():
                rows.append(row)
                if len(rows) >= _BATCH:
                    batches.append(_batch(rows))
                    rows = []
            batches.append(_batch(rows))
            reader.check()
            readers.append(reader)
        sparse.check()
        sparse_notes += [f"{entry.path}: {note}" for note in sparse.notes()]
    for reader in readers:  # a later file may have replaced what an earlier one said
        notes += reader.notes()
        sha256 = files.sha256(reader.path)
        provenance.append({"file": reader.path.name, "sha256": sha256, **reader.counts})
    notes += sparse_notes
    notes += repeats.check()
    table = pa.Table.from_batches(batches, schema=RESPONSES.schema)
    if repeats.dropped:
        stays = np.ones(table.num_rows, dtype=bool)
        stays[list(repeats.dropped)] = False
        table = table.filter(pa.array(stays))
    answered = set(table.column("model_id").unique().to_pylist())
    if silent := sorted(pool.keys() - answered):
        notes.append(f"no answer is recorded of {len(silent)} of the pool's models: {few(silent)}")
    order = [(name, "ascending") for name in RESPONSES.key]
    checked = RESPONSES.check(table.sort_by(order), where="recorded responses")
    places = {key: place for key, (place, *_) in repeats.seen.items()}
    return RecordedImport(checked, provenance, notes, places)


def _index(queries: pa.Table, entry: Recorded) -> dict[str, RecipeQuestion]:
    """source_id → the question of the entry's source."""
    index: dict[str, RecipeQuestion] = {}
    asked = ["query_id", "question", "prompt", "choices", "references", "scorer"]
    names = ["source", "source_id", *asked]
    rows = queries.select(names).to_pylist()
    sources = {row["source"] for row in rows}
    if entry.source is not None and entry.source not in sources:
        raise RecordedError(
            f"there is no source {entry.source!r} in the recipe",
            where="collect.recorded",
            next_step=did_you_mean(entry.source, sources),
        )
    for row in rows:
        source, source_id = row.pop("source"), row.pop("source_id")
        if entry.source is not None and source != entry.source:
            continue
        if source_id in index:
            raise RecordedError(
                f"the id {source_id!r} is in more than one source",
                where=f"collect.recorded, {entry.path}",
                next_step="set 'source' to the source that these responses answer",
            )
        index[source_id] = RecipeQuestion(**row)
    return index


def _batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Responses as a batch; all rows have the same keys in one order."""
    names = list(rows[0]) if rows else []
    said = dict(zip(names, zip(*(row.values() for row in rows), strict=True), strict=True))
    try:
        arrays = [
            pa.array(said[f.name], f.type) if f.name in said else pa.nulls(len(rows), f.type)
            for f in RESPONSES.schema
        ]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise RecordedError(
            f"a recorded column has values of the wrong type: {error}",
            where="collect.recorded",
            next_step="convert it in the mapping, e.g. prompt_tokens: '{{ tokens | int }}'",
        ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=RESPONSES.schema)
