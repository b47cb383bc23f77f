"""`outcomes`: labels and costs in one row per pair, made by blocks of queries.

Labels and responses are sorted by model, outcomes by query. A block of queries is read from
both files through the first and last key of their row groups. What a row group holds of
later blocks is kept, up to as many rows as a block has: so most are read once, and no more
than two blocks are in memory. A block holds arrays of numbers; its rows, with their ids as
text, are made some at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.schemas import OUTCOMES

#: Pairs in a block, and the step in queries: one word of `numbered.bits`.
_PAIRS, _STEP = 1 << 22, 64
#: Pairs that are looked at for rows at once.
_ROWS = 1 << 18
#: Columns of `responses` that are added up, null as soon as one is unknown.
_SUMMED = ("cost_usd", "prompt_tokens", "completion_tokens", "reasoning_tokens")

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Block:
    """Outcomes of `queries` (first row, one past the last) as arrays of (queries, models).

    `score`, `correct`, `contested` are NaN or −1 where missing, and `labelled`,
    `answered` say which pairs have a label and a response; `rows` gives those that have
    either, as OUTCOMES, in order and in parts.
    """

    first: int
    score: Array
    correct: Array
    contested: Array
    labelled: Array
    answered: Array
    cost_usd: Array
    rows: Callable[[], Iterator[pa.Table]]

    @property
    def shape(self) -> tuple[int, int]:
        return (int(self.score.shape[0]), int(self.score.shape[1]))


def block_size(models: int) -> int:
    """Queries in a block; it depends on the number of models only, so bytes do not vary."""
    return max(_PAIRS // max(models, 1) // _STEP, 1) * _STEP


def blocks(
    labels: Path, responses: Path | None, queries: pa.Array, models: pa.Array
) -> Iterator[Block]:
    """Outcomes of a release from its Parquet files, in order.

    Args:
        labels: `labels.parquet`, sorted by model and query.
        responses: `responses.parquet`, sorted by model, query and sample; None without any.
        queries, models: all ids in released order, which gives them their numbers.

    A label or response of a query or model that is not among them has no number, so it has
    no outcome; `verify` names it.
    """
    readers = [
        _Sorted(labels, "labels", ["score", "correct", "decided_by", "contested", "n_samples"])
    ]
    if responses is not None:
        readers.append(_Sorted(responses, "responses", [*_SUMMED, "latency_s"]))
    size = block_size(len(models))
    for first in range(0, len(queries), size):
        ids = queries.slice(first, size)
        yield _block(first, ids, models, readers)


class _Sorted:
    """A Parquet file sorted by model and query, read by rising ranges of queries."""

    def __init__(self, path: Path, name: str, columns: Sequence[str]) -> None:
        self.path, self.name = path, name
        self.columns = ["query_id", "model_id", *columns]
        self.file = pq.ParquetFile(
            path, read_dictionary=[c for c in ("model_id", "decided_by") if c in self.columns]
        )
        self.rows = self.file.metadata.num_rows
        self.groups = [self._span(number) for number in range(self.file.num_row_groups)]
        #: Row group → its rows of queries after the last range.
        self._later: dict[int, pa.Table] = {}

    def _span(self, number: int) -> tuple[str, str, bool]:
        """Smallest and largest query, and whether the group holds several models."""
        group = self.file.metadata.row_group(number)
        chunks = map(group.column, range(group.num_columns))
        ends = {chunk.path_in_schema: chunk.statistics for chunk in chunks}
        query, model = ends["query_id"], ends["model_id"]
        if not (query and model and query.has_min_max and model.has_min_max):
            return ("", "\U0010ffff", True)
        return (query.min, query.max, model.min != model.max)

    def between(self, low: str, high: str) -> pa.Table:
        """Rows of queries from `low` to `high`, both included, in the file's order.

        The next range must begin after `high`.
        """
        parts = [
            self._group(g, low, high)
            for g, (a, b, _) in enumerate(self.groups)
            if a <= high and b >= low
        ]
        return pa.concat_tables(
            parts or [self.file.schema_arrow.empty_table().select(self.columns)]
        )

    def _group(self, number: int, low: str, high: str) -> pa.Table:
        first, last, _ = self.groups[number]
        rows = self._later.pop(number, None)
        if rows is None:
            rows = self.file.read_row_group(number, columns=self.columns, use_threads=False)
            if first < low:
                rows = rows.filter(pc.greater_equal(rows.column("query_id"), low))
        if last <= high:
            return rows
        later = pc.greater(rows.column("query_id"), high)
        rest = rows.filter(later)
        if sum(held.num_rows for held in self._later.values()) + rest.num_rows <= _PAIRS:
            self._later[number] = rest
        return rows.filter(pc.invert(later))


def _known(part: pa.Table, ids: pa.Array, models: pa.Array) -> tuple[pa.Table, Array]:
    """Rows whose query and model have numbers, and the index of each in the flattened
    (queries, models) of a block."""
    q = pc.fill_null(pc.index_in(part.column("query_id"), value_set=ids), -1).to_numpy()
    m = [
        pc.fill_null(pc.index_in(chunk.dictionary, value_set=models), -1).to_numpy(
            zero_copy_only=False
        )[chunk.indices.to_numpy()]
        for chunk in part.column("model_id").chunks
    ]
    codes = np.concatenate(m) if m else np.zeros(0, dtype=np.int32)
    cells = np.asarray(q, dtype=np.int64) * len(models) + codes
    known = (q >= 0) & (codes >= 0)
    return (part, cells) if known.all() else (part.filter(pa.array(known)), cells[known])


def _block(first: int, ids: pa.Array, models: pa.Array, readers: Sequence[_Sorted]) -> Block:
    size = len(ids) * len(models)
    low, high = ids[0].as_py(), ids[-1].as_py()
    # Rows of a file are let go before the next file is read.
    held, deciders = _labels(*_known(readers[0].between(low, high), ids, models), size)
    held["n_responses"] = np.zeros(size, dtype=np.int32)
    for reader in readers[1:]:
        held |= _responses(*_known(reader.between(low, high), ids, models), size)
    labelled, answered = held["n_samples"] >= 0, held["n_responses"] > 0

    def part(one: dict[str, Array], keep: Array) -> pa.Table:
        q, m = keep // len(models), keep % len(models)
        missing = np.full(len(keep), np.nan)
        latency = one.get("latency_s", missing) / np.maximum(one["n_responses"], 1)
        columns = {
            "query_no": pa.array((q + first).astype(np.int32)),
            "model_no": pa.array(m.astype(np.int16)),
            "query_id": ids.take(pa.array(q)),
            "model_id": models.take(pa.array(m)),
            "score": pa.array(one["score"], from_pandas=True),
            "correct": pa.array(one["correct"] > 0, mask=one["correct"] < 0),
            "decided_by": deciders.take(pa.array(one["by"], mask=one["by"] < 0)),
            "latency_s": pa.array(latency.astype(np.float32), from_pandas=True),
            "n_samples": pa.array(one["n_samples"], mask=one["n_samples"] < 0),
            "n_responses": pa.array(one["n_responses"]),
            "contested": pa.array(one["contested"] > 0, mask=one["contested"] < 0),
        }
        for name in _SUMMED:
            found = pa.array(one.get(name, missing), from_pandas=True)
            columns[name] = found.cast(OUTCOMES.schema.field(name).type)
        named = [columns[name] for name in OUTCOMES.column_names]
        return pa.Table.from_arrays(named, schema=OUTCOMES.schema)

    def rows() -> Iterator[pa.Table]:
        for start in range(0, size, _ROWS):
            here = slice(start, start + _ROWS)
            keep = start + np.flatnonzero(labelled[here] | answered[here])
            yield part({name: values[keep] for name, values in held.items()}, keep)

    planes = {name: held[name] for name in ("score", "correct", "contested")}
    planes |= {"labelled": labelled, "answered": answered}
    planes["cost_usd"] = held["cost_usd"] if "cost_usd" in held else np.full(size, np.nan)
    shaped = {name: plane.reshape(len(ids), len(models)) for name, plane in planes.items()}
    return Block(first=first, rows=rows, **shaped)


def _labels(labels: pa.Table, at: Array, size: int) -> tuple[dict[str, Array], pa.Array]:
    """Column → (size,) values of the cells, and what `by` numbers."""

    def spread(name: str, empty: float, kind: Any) -> Array:
        out = np.full(size, empty, dtype=kind)
        out[at] = pc.fill_null(labels.column(name).cast(pa.from_numpy_dtype(kind)), empty)
        return out

    decided = labels.column("decided_by").unify_dictionaries().combine_chunks()
    if isinstance(decided, pa.ChunkedArray):
        decided = decided.chunk(0) if decided.num_chunks else pa.array([]).dictionary_encode()
    by = np.full(size, -1, dtype=np.int32)
    by[at] = pc.fill_null(decided.indices, -1)
    cells = {
        "score": spread("score", np.nan, np.float64),
        "correct": spread("correct", -1, np.int8),
        "contested": spread("contested", -1, np.int8),
        "n_samples": spread("n_samples", -1, np.int32),
        "by": by,
    }
    return cells, decided.dictionary.cast(pa.string())


def _responses(answers: pa.Table, at: Array, size: int) -> dict[str, Array]:
    """Column → (size,) sums over the samples of each cell, and their number."""
    n = np.bincount(at, minlength=size).astype(np.int32)
    sums = {name: _total(answers.column(name), at, n) for name in (*_SUMMED, "latency_s")}
    return {"n_responses": n, **sums}


def _total(values: pa.ChunkedArray, at: Array, n: Array) -> Array:
    """Sum per cell in order of samples; NaN where a value is unknown or missing."""
    flat = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    out = np.full(len(n), np.nan)
    if int(n.max(initial=0)) <= 1:
        out[at] = flat
        return out
    total = np.bincount(at, weights=flat, minlength=len(n))
    return np.where(n > 0, total, out)
