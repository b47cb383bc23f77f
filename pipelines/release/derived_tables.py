"""Tables derived from labels and responses: outcomes (whole, by split), wide matrix, summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.common.arrays import Ints
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.matrix import Matrix
from routeyard.pipelines.common.untrusted import RELEASED, bounded
from routeyard.pipelines.release.database import ids_of
from routeyard.pipelines.release.manifest import Content, Contents
from routeyard.pipelines.release.sql import sql_of
from routeyard.pipelines.release.tables import ROWS_PER_GROUP, GroupWriter
from routeyard.schemas import OUTCOMES, StoredTable
from routeyard.schemas.release import SPLITS, UNASSIGNED, TableEntry, folder_names, split_file

# `outcomes`: labels and costs in one row per pair, made by blocks of queries.
#
# Labels and responses are sorted by model, outcomes by query. A block of queries is read from
# both files through the first and last key of their row groups. What a row group holds of
# later blocks is kept, up to as many rows as a block has: so most are read once, and no more
# than two blocks are in memory. A block holds arrays of numbers; its rows, with their ids as
# text, are made some at a time.

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


# Counts per query, per model and per task that the saved queries start from.
#
# They are made block by block with the outcomes, and written to `numbered/` of a release as
# Parquet and to the schema `numbered` of its database. `SQL` defines the same tables over labels
# and responses; a test compares the two.

_WORD = 64

_SQL = sql_of("summaries")
_METERED = _SQL.pop("metered")
#: Summary → the same over `labels`, `responses`, `queries`, `models` with their numbers.
SQL: Mapping[str, str] = {
    **_SQL,
    "metered": _METERED.format(number="model_no", responses="{responses}")
    + " JOIN numbered.models USING (model_id) GROUP BY ALL",
}
_IF_ANY = "HAVING count(*) > 0"


class Summaries:
    """Adds up blocks of outcomes; `tables` gives what `SQL` says, without `metered`."""

    def __init__(self, tasks: pa.ChunkedArray, models: int) -> None:
        encoded = tasks.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        self._task, self._names = encoded.indices.to_numpy(), encoded.dictionary
        self._models = models
        size = models * max(len(self._names), 1)
        self._of_task: dict[str, Array] = {
            name: np.zeros(size) for name in ("total", "lead", "top")
        }
        self._of_task |= {name: np.zeros(size, dtype=np.int64) for name in ("rows", "judged")}
        counts = ("answered", "correct", "priced", "queries")
        self._model: dict[str, Array] = {name: np.zeros(models, dtype=np.int64) for name in counts}
        self._model |= {name: np.zeros(models) for name in ("cost_usd", "cheapest_usd")}
        self._per_query: list[pa.Table] = []
        self._bits: list[pa.Table] = []

    def add(self, block: Block) -> None:
        judged = ~np.isnan(block.score)
        filled = np.where(judged, block.score, 0.0)
        graded = np.any((filled > 0) & (filled < 1), axis=1)
        self._per_query.append(_per_query(block, judged, filled, graded))
        plain = judged & ~graded[:, None]
        self._bits.append(_bits(block.first, plain, plain & (filled == 1)))
        task = self._task[block.first : block.first + len(filled)]
        code = task[:, None] + np.arange(self._models) * len(self._names)
        of_task, size = self._of_task, len(self._of_task["total"])
        of_task["total"] += np.bincount(code.ravel(), filled.ravel(), size)
        of_task["judged"] += np.bincount(code[judged], minlength=size)
        of_task["rows"] += np.bincount(code[block.labelled], minlength=size)
        middle = filled.sum(axis=1) / np.maximum(judged.sum(axis=1), 1)
        of_task["lead"] += np.bincount(code[judged], (filled - middle[:, None])[judged], size)
        top = np.broadcast_to(filled.max(axis=1, initial=0.0)[:, None], judged.shape)
        of_task["top"] += np.bincount(code[judged], top[judged], size)
        both = block.labelled & block.answered
        known = both & ~np.isnan(block.cost_usd)
        self._model["answered"] += both.sum(axis=0)
        self._model["correct"] += (both & (block.correct > 0)).sum(axis=0)
        self._model["priced"] += known.sum(axis=0)
        self._model["cost_usd"] += np.where(known, block.cost_usd, 0.0).sum(axis=0)
        self._add_cheapest(np.where(known & (block.correct > 0), block.cost_usd, np.inf))

    def _add_cheapest(self, cost: Array) -> None:
        """`cost` (queries, models), infinite where a model is not correct or its cost unknown."""
        # The first of equal costs is that of the smaller model id, as in the plain query.
        best = cost.argmin(axis=1)
        usd = np.take_along_axis(cost, best[:, None], axis=1)[:, 0]
        there = np.isfinite(usd)
        size = self._models
        self._model["queries"] += np.bincount(best[there], minlength=size)
        self._model["cheapest_usd"] += np.bincount(best[there], usd[there], size)

    def tables(self) -> dict[str, pa.Table]:
        """`per_query`, `per_task`, `leads`, `per_model`, `cheapest`, `bits`, by number."""
        names = max(len(self._names), 1)
        cells, judged = (np.flatnonzero(self._of_task[name]) for name in ("rows", "judged"))

        def by_task(at: Array, *columns: str) -> pa.Table:
            task = self._names.take(pa.array(at % names))
            sums = {name: self._of_task[name][at] for name in columns}
            return pa.table({"model_no": (at // names).astype(np.int16), "task": task, **sums})

        def by_model(at: Array, **columns: str) -> pa.Table:
            counted = {name: self._model[own][at] for name, own in columns.items()}
            return pa.table({"model_no": at.astype(np.int16), **counted})

        same = {name: name for name in ("answered", "correct", "priced", "cost_usd")}
        empty = np.zeros((0, self._models))
        none = empty.astype(bool)
        nothing = Block(0, empty, empty, empty, none, none, empty, lambda: iter(()))
        first = _per_query(nothing, none, empty, np.zeros(0, dtype=bool))
        return {
            "per_query": pa.concat_tables([first, *self._per_query]),
            "per_task": by_task(cells, "judged", "total"),
            "leads": by_task(judged, "lead", "top"),
            "per_model": by_model(np.flatnonzero(self._model["answered"]), **same),
            "cheapest": by_model(
                np.flatnonzero(self._model["queries"]), queries="queries", cost_usd="cheapest_usd"
            ),
            "bits": pa.concat_tables([_bits(0, none, none), *self._bits]),
        }


def metered(responses: Path | None, models: pa.Array) -> pa.Table:
    """Tokens, cost and latency per model, one model at a time (a median needs all its rows).

    Args:
        models: Ids of the models in order of their numbers.
    """
    import duckdb

    empty = "(SELECT NULL::BIGINT AS prompt_tokens, NULL::BIGINT AS completion_tokens, "
    empty += "NULL::DOUBLE AS cost_usd, NULL::DOUBLE AS latency_s, '' AS model_id)"
    parts = []
    # One thread: the last digit of a sum does not depend on the machine.
    with duckdb.connect(config={"threads": 1, "memory_limit": "2GB"}) as connection:
        name = "responses"
        if responses is not None:
            connection.from_parquet(str(responses)).create_view(name)
        for number, model in enumerate(models.to_pylist() if responses is not None else []):
            where = "WHERE model_id = '" + model.replace("'", "''") + "'"
            body = _METERED.format(number=f"{number}::SMALLINT", responses=name)
            parts.append(connection.sql(f"{body} {where} {_IF_ANY}").to_arrow_table())
        nothing = _METERED.format(number="0::SMALLINT", responses=empty)
        parts.append(connection.sql(f"{nothing} WHERE false {_IF_ANY}").to_arrow_table())
    return pa.concat_tables(parts)


def _per_query(block: Block, judged: Array, filled: Array, graded: Array) -> pa.Table:
    right = block.correct > 0
    solved_by = right.sum(axis=1, dtype=np.int32)
    here = np.flatnonzero(block.labelled.any(axis=1))
    n_judged = judged.sum(axis=1, dtype=np.int32)
    top = np.where(judged, filled, -1.0).max(axis=1, initial=-1.0)
    table = pa.table(
        {
            "query_no": pa.array(np.arange(block.first, block.first + len(filled), dtype=np.int32)),
            "judged": n_judged,
            "total": filled.sum(axis=1),
            "top": pa.array(top, mask=n_judged == 0),
            "solved_by": solved_by,
            "first_solver": pa.array(
                right.argmax(axis=1).astype(np.int16) if len(right) else np.zeros(0, np.int16),
                mask=solved_by == 0,
            ),
            "contested": (block.contested > 0).sum(axis=1, dtype=np.int32),
            "graded": graded,
        }
    )
    return table if len(here) == table.num_rows else table.take(pa.array(here))


def _bits(first: int, judged: Array, solved: Array) -> pa.Table:
    """64 queries as one word per model; words without a judged query are left out."""
    packed = [_pack(judged), _pack(solved)]
    word, model = np.nonzero(packed[0])
    return pa.table(
        {
            "model_no": model.astype(np.int16),
            "word": (word + first // _WORD).astype(np.int32),
            "judged": packed[0][word, model],
            "solved": packed[1][word, model],
        }
    )


def _pack(flags: Array) -> Array:
    """(queries, models) flags as (words, models) of 64 bits, query 0 lowest."""
    n, models = flags.shape
    padded = np.zeros((-(-n // _WORD) * _WORD, models), dtype=bool)
    padded[:n] = flags
    bytes_ = np.packbits(padded.T, axis=1, bitorder="little")
    return np.ascontiguousarray(np.ascontiguousarray(bytes_).view("<u8").T)


#: Labels once more, one row per query and one column per model.
WIDE = "data/labels_wide.parquet"
#: Folder of the summaries in a release, one Parquet file each.
NUMBERED = "numbered"


def derive(
    released: Mapping[str, pa.Table | StoredTable], folder: Path
) -> tuple[TableEntry, dict[str, pa.Table]]:
    """Write outcomes (whole and by split), `labels_wide.parquet` and summaries of a release.

    One pass over labels and responses by blocks of queries: no more than a block is
    in memory, apart from summaries of about 50 bytes per query.

    Returns:
        The entry of `outcomes`, and the summaries for the database.
    """
    queries = columns_of(released["queries"], ["query_id", "task"])
    models = columns_of(released["models"], ["model_id"])
    query_ids, model_ids = ids_of(queries, "query_id"), ids_of(models, "model_id")
    names = model_ids.to_pylist()
    responses = folder / "data/responses.parquet" if "responses" in released else None
    counted = Summaries(queries.column("task"), len(names))
    contents = Contents(OUTCOMES.schema)
    splits = OutcomeSplits(
        columns_of(released["splits"], ["scheme", "query_id", "split"]), query_ids
    )
    rows = 0
    file = f"data/{OUTCOMES.name}.parquet"
    with (
        GroupWriter(folder / WIDE, wide_schema(names), sorted_ids=["query_id"]) as wide,
        GroupWriter(folder / file, OUTCOMES.schema, counting=["query_no"]) as writer,
        SplitWriter(splits, folder) as by_split,
    ):
        for block in blocks(folder / "data/labels.parquet", responses, query_ids, model_ids):
            for part in block.rows():
                writer.write(part)
                by_split.write(part)
                contents.update(part)
                rows += part.num_rows
            counted.add(block)
            ids = query_ids.slice(block.first, block.shape[0])
            wide.write(wide_rows(ids, block.score, names))
    entry = TableEntry(
        file=file,
        rows=rows,
        content=contents.full,
        content_without_times=contents.without_times,
        contract=OUTCOMES.version,
    )
    summaries = {**counted.tables(), "metered": metered(responses, model_ids)}
    (folder / NUMBERED).mkdir()
    for name, table in summaries.items():
        with GroupWriter(folder / numbered(name), table.schema) as out:
            out.write(table)
    return entry, summaries


def numbered(name: str) -> str:
    """Path of a summary in a release."""
    return f"{NUMBERED}/{name}.parquet"


def columns_of(table: pa.Table | StoredTable, names: list[str]) -> pa.Table:
    """Some columns of a table, in memory."""
    return table.read(names) if isinstance(table, StoredTable) else table.select(names)


def wide_schema(models: Sequence[str]) -> pa.Schema:
    """`query_id` and a float32 column per model."""
    columns = [pa.field(model, pa.float32()) for model in models]
    return pa.schema([pa.field("query_id", pa.string()), *columns])


def wide_rows(queries: pa.Array, scores: np.ndarray[Any, Any], models: Sequence[str]) -> pa.Table:
    """Labels of some queries as query × model: float32 scores, null where missing."""
    columns = [
        pa.array(scores[:, m].astype(np.float32), from_pandas=True) for m in range(len(models))
    ]
    return pa.Table.from_arrays([queries, *columns], schema=wide_schema(models))


def read_wide(path: Path) -> Matrix:
    """The matrix of scores of `labels_wide.parquet`, float32.

    Raises:
        SourceError: the file is damaged.
    """
    try:
        table = pq.read_table(bounded(path, RELEASED))
        models = table.column_names[1:]
        columns = [table.column(name).to_numpy() for name in models]
        queries = table.column("query_id").to_pylist()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise SourceError(
            f"{path.name} cannot be read: {str(error).splitlines()[0]}",
            where=str(path),
            next_step="find what is wrong with `routeyard verify`, or fetch the file again",
        ) from error
    values = np.empty((len(queries), len(models)), dtype=np.float32)
    for m, column in enumerate(columns):
        values[:, m] = column
    return Matrix(values, queries, models)


class OutcomeSplits:
    """Where each row of `outcomes` goes, by the number of its query.

    Args:
        splits: SPLITS of all schemes.
        query_ids: All ids in released order.
    """

    def __init__(self, splits: pa.Table, query_ids: pa.Array) -> None:
        names = folder_names(set(splits.column("scheme").to_pylist()))
        places = pc.index_in(splits.column("query_id"), value_set=query_ids)
        codes = pc.index_in(splits.column("split"), value_set=pa.array(SPLITS))
        #: Folder → for each query, which of `SPLITS` it is in.
        self._split_of: dict[str, Ints] = {}
        for scheme, folder in names.items():
            here = pc.and_(pc.equal(splits.column("scheme"), scheme), pc.is_valid(places))
            split_of = np.full(len(query_ids), SPLITS.index(UNASSIGNED))
            split_of[places.filter(here).to_numpy()] = codes.filter(here).to_numpy()
            self._split_of[folder] = split_of

    def parts(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """(path in the release, rows of it) of some rows, at most a row group at a time."""
        for start in range(0, rows.num_rows, ROWS_PER_GROUP):
            some = rows.slice(start, ROWS_PER_GROUP)
            numbers = some.column("query_no").to_numpy()
            for folder, split_of in self._split_of.items():
                found = split_of[numbers]
                for code in np.unique(found):
                    yield split_file(folder, SPLITS[code]), some.filter(pa.array(found == code))


class SplitWriter(ExitStack):
    """Writes the files of `OutcomeSplits`. Use as a context manager."""

    def __init__(self, splits: OutcomeSplits, release: Path) -> None:
        super().__init__()
        self._splits, self._release = splits, release
        self._writers: dict[str, GroupWriter] = {}

    def write(self, rows: pa.Table) -> None:
        for name, part in self._splits.parts(rows):
            if name not in self._writers:
                path = self._release / name
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = GroupWriter(path, OUTCOMES.schema, counting=["query_no"])
                self._writers[name] = self.enter_context(writer)
            self._writers[name].write(part)


class SplitContents:
    """Fingerprints of what the files of `OutcomeSplits` have to say."""

    def __init__(self, splits: OutcomeSplits) -> None:
        self._splits = splits
        self._contents: dict[str, Content] = {}

    def update(self, rows: pa.Table) -> None:
        for name, part in self._splits.parts(rows):
            self._contents.setdefault(name, Content(OUTCOMES.schema)).update(part)

    def digests(self) -> dict[str, str]:
        """Path in the release → fingerprint."""
        return {name: content.hexdigest() for name, content in self._contents.items()}
