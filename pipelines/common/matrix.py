"""The one matrix of labels, scores and costs, with names; missing values are NaN or masked.

`Core` is a release as matrices, and `from_tables` reads it from tables. Large arrays are
memory-mapped; `arrays.py` works on them a block of rows at a time, and says beforehand whether
they fit.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import (
    Array,
    Bools,
    Floats,
    Ints,
    Names,
    Vectors,
    allocate,
    blocks,
    by_rows,
    check_fits,
    every,
    mean_costs,
    ranked,
    ratio,
    sums_of,
    take_rows,
)
from routeyard.pipelines.common.errors import few
from routeyard.pipelines.common.staging import column_batches, positions, positions_within
from routeyard.schemas import OUTCOMES, QUERIES, SPLITS, StoredTable
from routeyard.schemas.contracts import TableStore
from routeyard.schemas.errors import BadInput
from routeyard.schemas.images import IMAGES, PLAIN_MARK, UNSEEN
from routeyard.schemas.questions import marks_of
from routeyard.schemas.release import WITHHELD
from routeyard.schemas.text import html_card

if TYPE_CHECKING:
    import pandas as pd

# Long tables to dense matrices, by integer codes.
#
# A pivot in SQL or pandas takes 10 to 100 s on 27 M labels; dictionary-encoding
# the two keys and scattering takes about one. Outcomes are read a row group at a time, so that
# no long table is in memory.

_IDS = ["query_id", "model_id"]
_VALUES = [
    "score", "correct", "decided_by", "contested", "cost_usd", "prompt_tokens",
    "completion_tokens", "latency_s", "n_responses",
]  # fmt: skip


def codes(values: pa.ChunkedArray, known: pa.Array) -> Ints:
    """Position of every value in `known`; −1 where it is not listed."""
    index = pc.index_in(values, value_set=known)
    return np.asarray(pc.fill_null(index, -1).to_numpy(), dtype=np.int64)


def dense(rows: Ints, columns: Ints, values: pa.ChunkedArray, shape: tuple[int, int]) -> Floats:
    """(n, m) float64 with NaN where there is no row or its value is null.

    Rows whose key is unknown (code −1) are left out. Several rows of one cell
    (samples of one response) are averaged over those that are not null.
    """
    flat = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    use = (rows >= 0) & (columns >= 0) & ~np.isnan(flat)
    cell = rows[use] * shape[1] + columns[use]
    size = shape[0] * shape[1]
    n = np.bincount(cell, minlength=size)
    total = np.bincount(cell, weights=flat[use], minlength=size)
    return ratio(total, n).reshape(shape)


@dataclass(frozen=True, slots=True, repr=False)
class Matrix:
    """Values of shape (len(queries), len(models)); NaN where nothing is known.

    Attributes:
        measure: What the values are: `score`, `cost_usd`, …
    """

    values: Array
    queries: list[str]
    models: list[str]
    measure: str = "score"

    @property
    def missing(self) -> int:
        """Number of cells without a value."""
        return int(np.isnan(self.values).sum())

    def to_pandas(self) -> pd.DataFrame:
        """A data frame of one row per query and one column per model; NaN is unknown."""
        import pandas as pd

        index = pd.Index(self.queries, name="query_id")
        return pd.DataFrame(
            self.values, index=index, columns=pd.Index(self.models, name="model_id")
        )

    def __repr__(self) -> str:
        n, m = self.values.shape
        return f"Matrix of {self.measure}: {n:,} queries × {m:,} models, {self.missing:,} missing"

    def _repr_html_(self) -> str:
        with np.errstate(invalid="ignore"):
            known = (~np.isnan(self.values)).sum(axis=0)
            means = np.nansum(self.values, axis=0) / np.where(known, known, np.nan)
        rows = [
            {"model": model, f"mean {self.measure}": float(mean), "queries": int(count)}
            for model, mean, count in zip(self.models, means, known, strict=True)
        ]
        facts = {"queries": len(self.queries), "models": len(rows), "missing": self.missing}
        return html_card(f"matrix of {self.measure}", facts, rows)

    def to_table(self) -> pa.Table:
        """`query_id` and one column per model; NaN becomes null."""
        columns: list[Any] = [pa.array(self.queries, pa.string())]
        columns += [
            pa.array(np.ascontiguousarray(self.values[:, m]), from_pandas=True)
            for m in range(len(self.models))
        ]
        return pa.Table.from_arrays(columns, names=["query_id", *self.models])


def scatter(
    rows: pa.Table, value: str, *, queries: Sequence[str], models: Sequence[str], dtype: Any
) -> Matrix:
    """Scatter `rows` (query_id, model_id, value) into a matrix.

    Rows about other queries or models are left out; a null value stays NaN.
    """
    values = np.full((len(queries), len(models)), np.nan, dtype=dtype)
    q = codes(rows.column("query_id"), pa.array(queries, pa.string()))
    m = codes(rows.column("model_id"), pa.array(models, pa.string()))
    known = (q >= 0) & (m >= 0)
    numbers = rows.column(value).cast(pa.float64()).to_numpy()
    values[q[known], m[known]] = numbers[known]
    return Matrix(values, list(queries), list(models), value)


def read_outcomes(
    outcomes: pa.Table | StoredTable, query_ids: pa.Array, model_ids: pa.Array
) -> tuple[dict[str, Any], dict[str, Floats]]:
    """The fields of `Core` that `outcomes` holds, and the costs `usd`, `tokens` and `latency`.

    Rows of queries and models that are not named are left out. `correct` is `labels` itself where
    the two are equal. Without any response there are no costs.
    Memory holds the matrices (8 bytes per cell each) and one row group of the file.

    Raises:
        ContractError: a column is missing.
    """
    shape = (len(query_ids), len(model_ids))
    names = ("labels", "correct", "usd", "tokens", "latency")
    out: dict[str, Floats] = {name: allocate(shape, fill=np.nan) for name in names}
    decided = contested = said = unreadable = 0
    answered = False
    if isinstance(outcomes, StoredTable):
        OUTCOMES.conform(outcomes.schema.empty_table(), where=str(outcomes.path))
    for part in column_batches(outcomes, _IDS + _VALUES):
        rows = positions_within(part.column("query_id"), query_ids)
        columns = positions(part.column("model_id"), model_ids)
        score = _floats(part, "score")
        judged = part.filter(pa.array(~np.isnan(score)))
        decided += judged.num_rows
        contested += pc.sum(judged.column("contested")).as_py() or 0
        by = part.column("decided_by")
        said += len(by) - by.null_count
        unreadable += pc.sum(pc.equal(by, "unreadable")).as_py() or 0
        n = _floats(part, "n_responses")
        answered = answered or bool(np.any(n > 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            values = {
                "labels": score,
                "correct": _floats(part, "correct"),
                "usd": _floats(part, "cost_usd") / n,
                "tokens": (_floats(part, "prompt_tokens") + _floats(part, "completion_tokens")) / n,
                "latency": _floats(part, "latency_s"),
            }
        known = (rows >= 0) & (columns >= 0)
        for name, value in values.items():
            out[name][rows[known], columns[known]] = value[known]
    labels, correct = out["labels"], out["correct"]
    same = all(
        np.array_equal(labels[rows], correct[rows], equal_nan=True) for rows in blocks(shape[0])
    )
    result = {
        "labels": labels,
        "correct": labels if same else correct,
        "contested": contested / decided if decided else None,
        "unreadable": unreadable / said if said else None,
    }
    return result, {name: out[name] for name in names[2:]} if answered else {}


def _floats(part: pa.RecordBatch, name: str) -> Floats:
    values = part.column(name)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    numbers: Floats = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


# What answers cost, as one matrix per measure, from outcomes or from responses.


def costs_of(
    models: pa.Table,
    responses: pa.Table | None,
    outcome_costs: Mapping[str, Floats] | None,
    query_ids: pa.Array,
    model_ids: pa.Array,
) -> dict[str, Floats]:
    """Cost matrices (queries, models) by measure: `usd`, `tokens`, `latency`, `params`.

    Args:
        outcome_costs: what outcomes say of the first three; None takes them from `responses`.

    A pair's cost is that of one answer; NaN where it is unknown. A measure of which nothing
    is known is left out.
    """
    shape = (len(query_ids), len(model_ids))
    costs: dict[str, Floats] = {}
    if outcome_costs is not None:
        costs |= outcome_costs
    elif responses is not None and responses.num_rows:
        rows = codes(responses.column("query_id"), query_ids)
        columns = codes(responses.column("model_id"), model_ids)
        tokens = pc.add(responses.column("prompt_tokens"), responses.column("completion_tokens"))
        for name, values in (
            ("usd", responses.column("cost_usd")),
            ("tokens", tokens),
            ("latency", responses.column("latency_s")),
        ):
            costs[name] = _known(rows, columns, values, shape)
        # As outcomes keep it, so that staged tables and a release give the same figures.
        costs["latency"] = costs["latency"].astype(np.float32).astype(np.float64)
    at = codes(models.column("model_id"), model_ids)
    params = np.full(len(model_ids), np.nan)
    params[at] = models.column("params_b").cast(pa.float64()).to_numpy(zero_copy_only=False)
    costs["params"] = np.broadcast_to(params, shape)  # one row, seen n times
    return {name: cost for name, cost in costs.items() if priced(cost).any()}


def priced(cost: Floats) -> Bools:
    """(m,) whether anything is known of what a model costs."""
    return np.asarray(sums_of(lambda part: ~np.isnan(part), cost) > 0)


def unpriced(cost: Floats, models: Sequence[str]) -> tuple[str, ...]:
    """The models of which nothing is known."""
    return tuple(name for name, has in zip(models, priced(cost), strict=True) if not has)


def _known(rows: Ints, columns: Ints, values: pa.ChunkedArray, shape: tuple[int, int]) -> Floats:
    """Mean over the answers of each pair; NaN as soon as one of them is unknown."""
    known = dense(rows, columns, values, shape)
    unknown = values.is_null().to_numpy() & (rows >= 0) & (columns >= 0)
    known[rows[unknown], columns[unknown]] = np.nan
    return known


# Embeddings as one array, read a row group at a time.


def encoder_vectors(
    embeddings: pa.Table | StoredTable | None, query_ids: pa.Array, encoder: str | None
) -> Vectors | None:
    """(n, d) vectors of one encoder in the order of the ids; None without any embeddings.

    Args:
        encoder: the first name in order when None.

    Raises:
        BadInput: a query has no vector, or two; vectors differ in length, or are not finite.
    """
    chosen = encoder or first_encoder(embeddings)
    if embeddings is None or chosen is None or not embeddings.num_rows:
        return None
    value = np.zeros(len(query_ids), dtype=bool)
    vectors = None
    for part in column_batches(embeddings, ["query_id", "encoder", "vector"]):
        own = part.filter(pc.equal(part.column("encoder").cast(pa.string()), chosen))
        if not own.num_rows:
            continue
        at = positions_within(own.column("query_id"), query_ids)
        flat = _flat(own.column("vector"), chosen)
        if vectors is None:
            vectors = allocate((len(query_ids), flat.shape[1]), np.float32)
        here = at[at >= 0]
        if flat.shape[1] != vectors.shape[1]:
            raise _wrong(chosen, "of different lengths")
        if value[here].any() or len(np.unique(here)) < len(here):
            raise _wrong(chosen, "two for one query")
        vectors[here] = flat[at >= 0]
        value[here] = True
    if not value.all():
        names = ", ".join(sorted(_names(embeddings)))
        raise BadInput(
            f"encoder {chosen!r} has embeddings for {int(value.sum())} of {len(query_ids)} queries",
            next_step=f"known encoders: {names}; embed the rest, or pass none",
        )
    return vectors


def first_encoder(embeddings: pa.Table | StoredTable | None) -> str | None:
    """The encoder that is taken when none is named: the first name in order; None without any."""
    return min(_names(embeddings), default=None) if embeddings is not None else None


def _flat(column: pa.ChunkedArray, encoder: str) -> Vectors:
    """(rows, d) numbers; a vector of another length would give its neighbours' to the next."""
    lengths = pc.list_value_length(column)
    least, most = pc.min_max(lengths).as_py().values()
    if lengths.null_count or least != most:
        raise _wrong(encoder, "of different lengths")
    flat: Vectors = column.flatten().to_numpy(zero_copy_only=False)
    if not most or not np.isfinite(flat).all():
        raise _wrong(encoder, "that are empty or not finite")
    return flat.reshape(len(lengths), most)


def _wrong(encoder: str, what: str) -> BadInput:
    return BadInput(
        f"encoder {encoder!r} has vectors {what}",
        next_step="give each query one vector of finite numbers, all of one length",
    )


def width_of(embeddings: StoredTable) -> int:
    """Numbers in a vector of a file, from its footer; 0 without any."""
    about = pq.read_metadata(embeddings.path)
    for group in map(about.row_group, range(about.num_row_groups)):
        if group.num_rows:
            chunks = map(group.column, range(group.num_columns))
            vector = next(chunk for chunk in chunks if chunk.path_in_schema.startswith("vector"))
            return int(vector.num_values // group.num_rows)
    return 0


def _names(embeddings: pa.Table | StoredTable) -> set[str]:
    names: set[str] = set()
    for part in column_batches(embeddings, ["encoder"]):
        names.update(part.column("encoder").unique().to_pylist())
    return names


# Labels as a dense matrix with a mask: missing is missing, never zero.


@dataclass(frozen=True, slots=True)
class LabelMatrix:
    """Which model is right on which query.

    Attributes:
        models: m model ids, sorted.
        queries: q query ids, in the order of the `queries` table.
        task: (q,) index into `tasks`.
        tasks: Task names, sorted.
        correct: (m, q) right; False where there is no label.
        known: (m, q) there is a decided label.
    """

    models: Sequence[str]
    queries: Sequence[str]
    task: Ints
    tasks: Sequence[str]
    correct: Bools
    known: Bools

    def by_task(self) -> tuple[Ints, Ints]:
        """(m, t) numbers of right answers and of labels."""
        order = np.argsort(self.task, kind="stable")
        starts = np.searchsorted(self.task[order], np.arange(len(self.tasks)))
        right = np.add.reduceat(self.correct[:, order], starts, axis=1, dtype=np.int64)
        count = np.add.reduceat(self.known[:, order], starts, axis=1, dtype=np.int64)
        return right, count


def label_matrix(tables: Mapping[str, pa.Table | StoredTable], *, where: str) -> LabelMatrix:
    """The matrix of the real models over all queries.

    Raises:
        BadInput: there are no labels, or a label names an unknown query.
    """
    labels = tables.get("labels")
    if labels is None:
        raise BadInput(
            f"{where} needs labels, and the release has none",
            where="tables['labels']",
            next_step="run the label stage first",
        )
    models_table, asked = (_whole(tables[name]) for name in ("models", "queries"))
    wanted = pc.equal(models_table.column("kind"), "real")
    models = sorted(models_table.filter(wanted).column("model_id").to_pylist())
    queries = asked.column("query_id").to_pylist()
    tasks, task = np.unique(asked.column("task").to_pylist(), return_inverse=True)
    correct = np.zeros((len(models), len(queries)), dtype=bool)
    known = np.zeros_like(correct)
    model_ids, query_ids = pa.array(models, pa.string()), pa.array(queries, pa.string())
    for part in column_batches(labels, ["query_id", "model_id", "correct"]):
        decided = part.filter(pc.is_valid(part.column("correct")))
        i = positions(decided.column("model_id"), model_ids)
        j = positions(decided.column("query_id"), query_ids)
        if len(stray := decided.filter(pa.array(j < 0)).column("query_id").to_pylist()):
            raise BadInput(
                f"{where}: {len(stray)} label(s) belong to no query",
                where=", ".join(stray[:3]),
                next_step="label the queries that are in the table",
            )
        inside = i >= 0  # models of other kinds (pseudo-specialists) have no row here
        known[i[inside], j[inside]] = True
        right = decided.column("correct").to_numpy(zero_copy_only=False)
        correct[i[inside], j[inside]] = right[inside].astype(bool)
    return LabelMatrix(models, queries, task, tasks.tolist(), correct, known)


def _whole(table: pa.Table | StoredTable) -> pa.Table:
    return table if isinstance(table, pa.Table) else table.read()


def in_drawn_order(matrix: LabelMatrix) -> LabelMatrix:
    """The models in an order drawn by which questions each is right and wrong on.

    It decides between models of equal score and accuracy; only models with equal labels are left
    to their names, and those are interchangeable.
    """
    digests = (hashlib.sha256(query.encode()).digest() for query in matrix.queries)
    drawn = np.array([np.frombuffer(digest[:16], np.uint64) for digest in digests]).reshape(-1, 2)
    # Sums of 64 bits wrap around, and do not depend on the order of questions.
    numbers = np.zeros(len(matrix.models), dtype=np.uint64)
    for hashed, cells in zip(drawn.T, (matrix.correct & matrix.known, matrix.known), strict=True):
        numbers += np.array([hashed[row].sum() for row in cells], dtype=np.uint64)
    order = np.argsort(numbers, kind="stable")
    return replace(
        matrix,
        models=[matrix.models[place] for place in order],
        correct=matrix.correct[order],
        known=matrix.known[order],
    )


# What models show of themselves, as arrays: signals of answers, hidden states, descriptors.
#
# Names of the signals, of every (question, model) pair that has them, means over samples:
#
# * `entropy`, `margin`, `max_logit`, `perplexity`, `self_assessment`: columns of `signals`;
# * `semantic_entropy[<estimator>]`: of `entropies`, one per estimator (nat). Of several
#   backends the first in order counts.

#: Columns of the table `signals` that routers read.
SIGNAL_COLUMNS = ("entropy", "margin", "max_logit", "perplexity", "self_assessment")


def signals_of(
    signals: pa.Table | None, entropies: pa.Table | None, query_ids: pa.Array, model_ids: pa.Array
) -> dict[str, Floats]:
    """Signal → (n, m) with NaN where nobody looked; a signal nobody has is absent."""
    shape = (len(query_ids), len(model_ids))
    result: dict[str, Floats] = {}
    if signals is not None and signals.num_rows:
        rows = codes(signals.column("query_id"), query_ids)
        columns = codes(signals.column("model_id"), model_ids)
        for name in SIGNAL_COLUMNS:
            result[name] = dense(rows, columns, signals.column(name), shape)
    if entropies is not None and entropies.num_rows:
        for estimator in sorted(set(entropies.column("estimator").to_pylist())):
            part = entropies.filter(pc.equal(entropies.column("estimator"), estimator))
            backend = min(part.column("backend").to_pylist())
            part = part.filter(pc.equal(part.column("backend"), backend))
            result[f"semantic_entropy[{estimator}]"] = dense(
                codes(part.column("query_id"), query_ids),
                codes(part.column("model_id"), model_ids),
                part.column("semantic_entropy"),
                shape,
            )
    return {name: values for name, values in result.items() if not np.isnan(values).all()}


def states_of(states: pa.Table | None, query_ids: pa.Array) -> tuple[Vectors | None, str]:
    """((n, L, d) hidden states of one model, its name); NaN rows for questions not read.

    Of several models the first name in order is taken.

    Raises:
        BadInput: its vectors differ in width or its questions in layers.
    """
    if states is None or not states.num_rows:
        return None, ""
    chosen = min(states.column("model_id").to_pylist())
    part = states.filter(pc.equal(states.column("model_id"), chosen))
    rows = codes(part.column("query_id"), query_ids)
    part, rows = part.filter(pa.array(rows >= 0)), rows[rows >= 0]
    if not len(rows):
        return None, ""
    layer = part.column("layer").to_numpy().astype(np.int64)
    vectors = stacked(part.column("vector"), f"hidden states of {chosen}")
    values = np.full((len(query_ids), int(layer.max()) + 1, vectors.shape[1]), np.nan, np.float32)
    values[rows, layer] = vectors
    whole = ~np.isnan(values[:, :, 0])
    ragged = whole.any(axis=1) & ~whole.all(axis=1)
    if ragged.any():
        raise BadInput(
            f"{int(ragged.sum())} questions lack some layers of {chosen!r}, such as "
            f"{query_ids[int(np.argmax(ragged))]}",
            next_step="run `routeyard hidden-states` to its end",
        )
    return values, chosen


def descriptors_of(descriptors: pa.Table | None, model_ids: pa.Array) -> dict[str, Vectors]:
    """Kind → (m, k) descriptors; NaN rows for models without one of that kind."""
    result: dict[str, Vectors] = {}
    if descriptors is None:
        return result
    for kind in sorted(set(descriptors.column("kind").to_pylist())):
        part = descriptors.filter(pc.equal(descriptors.column("kind"), kind))
        rows = codes(part.column("model_id"), model_ids)
        part, rows = part.filter(pa.array(rows >= 0)), rows[rows >= 0]
        if len(rows):
            vectors = stacked(part.column("vector"), f"descriptors of kind {kind}")
            result[kind] = np.full((len(model_ids), vectors.shape[1]), np.nan, np.float32)
            result[kind][rows] = vectors
    return result


def stacked(column: pa.ChunkedArray, what: str) -> Vectors:
    """(rows, width) of a column of lists.

    Raises:
        BadInput: they differ in length.
    """
    widths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(widths) != 1 or not widths[0]:
        raise BadInput(
            f"the {what} differ in length: {sorted(w or 0 for w in widths)}",
            next_step="make them anew with one command, so that they share their axes",
        )
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat, dtype=np.float32).reshape(-1, widths[0])


def texts_of(parts: Iterable[pa.Array]) -> tuple[str, ...]:
    """Texts without nulls, of arrays that are read one at a time."""
    return tuple(text for part in parts for text in part.to_pylist())


def some(texts: Sequence[str], rows: Ints) -> tuple[str, ...]:
    """Texts at some rows; none of none."""
    return tuple(texts[i] for i in rows) if texts else ()


# What a router is given: questions without labels, and the labelled examples it learns from.


@dataclass(frozen=True, eq=False)
class Arms:
    """m members of a pool as arms of models, each (m,).

    Attributes:
        model: number of the model that is asked; arms of one model have the same.
        budget: tokens of the longest answer; NaN without its own limit.
        price_in, price_out: USD per token; NaN unknown.
    """

    model: Floats
    budget: Floats
    price_in: Floats
    price_out: Floats

    def take(self, at: Ints) -> Arms:
        """Only these members, in this order."""
        return Arms(self.model[at], self.budget[at], self.price_in[at], self.price_out[at])


def rows_of(values: Any, rows: Ints) -> Any:
    """These rows of a field with an entry for each query; of every value where it is a mapping.

    One row that is seen n times (a matrix with a stride of 0) stays one.
    """
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: rows_of(value, rows) for name, value in values.items()}
    if not isinstance(values, np.ndarray):
        return some(values, rows)
    if values.strides[0] == 0:
        return np.broadcast_to(values[:1], (len(rows), *values.shape[1:]))
    return take_rows(values, rows)


@dataclass(frozen=True, eq=False)
class Queries:
    """Questions without their labels.

    Attributes:
        query_ids: n ids.
        tasks: (n,) task names.
        embeddings: (n, d) float32, unit norm; None when the release has none.
        prompts: n prompts, Routeyard's instruction on the form of the answer included (which
            recorded models were never sent); empty when they were not handed over.
        signals: name → (n, m) what each model shows of itself while or after it
            answers (`margin`, `entropy`, …; `routeyard.pipelines.common.matrix` names them);
            columns as in `Examples.model_ids`, NaN where nothing was shown. Known
            only of models that have been asked: a router that reads them is no
            router of unasked questions.
        hidden: (n, L, d) float32, a local model's hidden state of every layer, layer
            0 the embeddings; NaN rows for questions that were not read. None without any.
        hidden_of: the model whose states they are.
        questions: n questions, each with its options in lines below and without an
            instruction: what `embeddings` are made of. Empty when not handed over.
    """

    query_ids: Sequence[str]
    tasks: Names
    embeddings: Vectors | None = None
    prompts: Sequence[str] = ()
    signals: Mapping[str, Floats] = field(default_factory=dict)
    hidden: Vectors | None = None
    hidden_of: str = ""
    questions: Sequence[str] = ()

    #: Fields with an entry for each query.
    PER_QUERY: ClassVar = (
        "query_ids", "tasks", "embeddings", "prompts", "signals", "hidden", "questions"
    )  # fmt: skip

    def __len__(self) -> int:
        return len(self.query_ids)

    def vectors(self) -> Vectors:
        """The embeddings.

        Raises:
            BadInput: the release has none.
        """
        if self.embeddings is None:
            raise BadInput(
                "this router needs embeddings of the questions, and the release has none",
                next_step="pass --embed (from Python: embed=True) or --embeddings FILE, or release "
                "with `include_embeddings: true`",
            )
        return self.embeddings

    def signal(self, name: str) -> Floats:
        """(n, m) one of the signals, NaN where missing.

        Raises:
            BadInput: there is no such signal.
        """
        if name not in self.signals:
            raise BadInput(
                f"this router needs the signal {name!r} of the models' answers, "
                "and the release has none",
                next_step="collect with log-probabilities or samples (tables `signals` and "
                "`entropies`), or pass their file with --also FILE",
            )
        return self.signals[name]

    def states(self) -> Vectors:
        """The hidden states (n, L, d).

        Raises:
            BadInput: the release has none, or not of every question.
        """
        how = "routeyard hidden-states RELEASE --model FOLDER --out states; then --also states"
        if self.hidden is None:
            raise BadInput(
                "this router needs hidden states of the questions, and the release has none",
                next_step=how,
            )
        missing = np.isnan(self.hidden[:, 0, 0])
        if missing.any():
            raise BadInput(
                f"{int(missing.sum())} of {len(self)} questions have no hidden state, such as "
                f"{self.query_ids[int(np.argmax(missing))]}",
                next_step=f"{how} (without --split)",
            )
        return self.hidden

    def take(self, rows: Ints) -> Queries:
        """The same, only these questions, in this order."""
        return replace(
            self, **{name: rows_of(getattr(self, name), rows) for name in self.PER_QUERY}
        )

    def with_models(self, at: Ints) -> Queries:
        """The same questions, what models show of themselves only of these, in this order."""
        return replace(self, signals={name: signal[:, at] for name, signal in self.signals.items()})

    def followed_by(self, other: Queries) -> Queries:
        """These questions, then those; what only one side has is left out."""
        a, b = self, other
        both = a.embeddings is not None and b.embeddings is not None
        read = a.hidden is not None and b.hidden is not None and a.hidden_of == b.hidden_of
        return replace(
            a,
            query_ids=(*a.query_ids, *b.query_ids),
            tasks=np.concatenate([a.tasks, b.tasks]),
            embeddings=np.concatenate([a.vectors(), b.vectors()]) if both else None,
            prompts=(*a.prompts, *b.prompts) if a.prompts and b.prompts else (),
            questions=(*a.questions, *b.questions) if a.questions and b.questions else (),
            signals={
                name: np.concatenate([values, b.signals[name]])
                for name, values in a.signals.items()
                if name in b.signals
            },
            hidden=np.concatenate([a.hidden, b.hidden]) if read else None,
            hidden_of=a.hidden_of if read else "",
        )


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled questions.

    Attributes:
        queries: n questions, without labels.
        model_ids: m models, the order of every column.
        labels: (n, m) float64, scores from 0 to 1; NaN where there is no label.
        costs: measure → (n, m) float64, NaN where unknown: `usd` (USD per question),
            `tokens` (per question), `latency` (seconds per question), `params` (10⁹
            parameters). A measure that is not known of every model is absent.
        validation: examples kept apart for choosing hyperparameters; None without any.
        descriptors: kind → (m, k) float32 vector that describes each model
            (`logit_footprint`, …); NaN rows for models without one.
        arms: what each model is, where some are one model with several output budgets;
            None where none are.
    """

    queries: Queries
    model_ids: tuple[str, ...]
    labels: Floats
    costs: Mapping[str, Floats] = field(default_factory=dict)
    validation: Examples | None = None
    descriptors: Mapping[str, Vectors] = field(default_factory=dict)
    arms: Arms | None = None

    def take(self, rows: Ints) -> Examples:
        """The same examples, only these questions; validation stays whole."""
        own = {name: rows_of(getattr(self, name), rows) for name in ("labels", "costs")}
        return replace(self, queries=self.queries.take(rows), **own)

    def with_models(self, at: Ints) -> Examples:
        """The same questions, only these models (positions), in this order."""
        return replace(
            self,
            queries=self.queries.with_models(at),
            model_ids=tuple(self.model_ids[k] for k in at.tolist()),
            labels=self.labels[:, at],
            costs={name: cost[:, at] for name, cost in self.costs.items()},
            validation=None if self.validation is None else self.validation.with_models(at),
            descriptors={kind: vectors[at] for kind, vectors in self.descriptors.items()},
            arms=None if self.arms is None else self.arms.take(at),
        )


# The evaluation core: a release as matrices.
#
# Everything the metrics, routers and the certificate need, in one frozen object:
# label matrix, cost matrices, embeddings, tasks, splits. `reading.from_tables`
# makes it, with queries in order of their ids and models best on train first (`ranking.ranked`),
# so that neither the order of rows in a release nor the names of models change anything.

#: Cost measures and their units.
MEASURES: Mapping[str, str] = {
    "usd": "USD per query",
    "tokens": "tokens per query",
    "latency": "s per query",
    "params": "10^9 parameters",
}


def first_measure(known: Mapping[str, object], asked: str | None = None) -> str | None:
    """The cost measure asked for, else the first of `MEASURES` that is known, else None.

    Raises:
        BadInput: the measure asked for is not known.
    """
    if asked is not None and asked not in known:
        raise BadInput(
            f"the release knows no cost measure {asked!r} for every model",
            next_step=f"known: {', '.join(known) or 'none'}",
        )
    return asked or next((name for name in MEASURES if name in known), None)


def complete_measure(costs: Mapping[str, Floats]) -> str | None:
    """The first of `MEASURES` with a cost of every model, else None: unknown is not free."""
    whole = (
        name
        for name in MEASURES
        if name in costs and np.all(sums_of(lambda part: ~np.isnan(part), costs[name]) > 0)
    )
    return next(whole, None)


#: Fields of `Core` with an entry for each query, but for `correct`, which may be `labels` itself.
PER_QUERY = (
    *Queries.PER_QUERY, "labels", "costs", "part_costs", "domains", "splits", "groups", "samples",
    "metadata", "sources", "options",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Core:
    """n queries × m models.

    Attributes:
        query_ids: n ids, sorted.
        model_ids: m ids, best first as `reading.from_tables` orders them.
        labels: Y, (n, m) scores in [0, 1]; NaN is missing, never wrong.
        costs: measure → (n, m), units in `MEASURES`; NaN is unknown, never
            free. A measure nobody knows anything of, or not of every model, is absent.
        part_costs: the same of measures that are known of some models only.
        tasks: (n,) task of each query.
        domains: (n,) domain of each query.
        splits: scheme → (n,) `train`, `validation`, `test` or empty.
        unseen: scheme → models a router may not see while it trains.
        groups: (n,) number of the near-duplicate group of each query.
        embeddings: (n, d) float32 of unit norm, or None.
        encoder: what made them.
        samples: (n, m, s) score of every sample, or None when there is one of each.
        contested: share of decided labels whose verdicts disagree; None without any.
        unreadable: share of labels, decided or not, that no scorer could read.
        prompts: n prompts.
        questions: n questions with their options, without our instruction, or none.
        correct: (n, m) the label policy's decision, 1 right and 0 wrong, NaN where
            there is no label: `labels.correct`, whose threshold the recipe
            sets. None only where `labels` is 0 and 1 throughout.
        sources: (n,) dataset of each query, or None when not known.
        options: (n,) number of options of each query, 0 where it is open;
            None when not known.
        metadata: n JSON objects that the sources say of their questions, or none.
        kinds: model → `real` or `pseudo_specialist`; unnamed models are real.
        duplicates_known: whether anybody looked for near-duplicates, which `groups` are.
        signals, hidden, hidden_of, descriptors, arms: as in `Queries` and `Examples`.
    """

    query_ids: Sequence[str]
    model_ids: tuple[str, ...]
    labels: Floats
    costs: Mapping[str, Floats]
    tasks: Names
    domains: Names
    splits: Mapping[str, Names]
    groups: Ints
    part_costs: Mapping[str, Floats] = field(default_factory=dict)
    unseen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    embeddings: Vectors | None = None
    encoder: str | None = None
    samples: Floats | None = None
    contested: float | None = None
    unreadable: float | None = None
    prompts: Sequence[str] = ()
    questions: Sequence[str] = ()
    correct: Floats | None = None
    sources: Names | None = None
    options: Ints | None = None
    metadata: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    duplicates_known: bool = False
    signals: Mapping[str, Floats] = field(default_factory=dict)
    hidden: Vectors | None = None
    hidden_of: str = ""
    descriptors: Mapping[str, Vectors] = field(default_factory=dict)
    arms: Arms | None = None

    @cached_property
    def lacking(self) -> dict[str, tuple[str, ...]]:
        """Measure of `part_costs` → the models it is not known of."""
        return {name: unpriced(c, self.model_ids) for name, c in self.part_costs.items()}

    @property
    def no_cost(self) -> str:
        """Why a figure that needs the cost of every model is not known."""
        named = "; ".join(f"{name}: not of {few(who)}" for name, who in self.lacking.items())
        why = "no cost measure is known for every model of the pool"
        return f"{why} ({named})" if named else why

    def priced(self, measure: str) -> tuple[Ints, Ints]:
        """(m,) labelled answers of each model whose cost is known, and its labelled answers."""
        both = sums_of(lambda y, c: ~np.isnan(y) & ~np.isnan(c), self.labels, self.costs[measure])
        return both, sums_of(lambda y: ~np.isnan(y), self.labels)

    def part_priced(self, measure: str) -> str:
        """Sentence on how many labelled answers have a known cost; empty where all have."""
        both, labelled = (int(counts.sum()) for counts in self.priced(measure))
        share = f"{both / max(labelled, 1):.1%}"
        words = f"known of {both:,} of {labelled:,} labelled answers ({share})"
        return words if both < labelled else ""

    @cached_property
    def decided(self) -> Floats:
        """(n, m) 1 right, 0 wrong, NaN without a label.

        Raises:
            BadInput: labels are between 0 and 1 and there is no column `correct`.
        """
        if self.correct is self.labels:
            return self.labels
        if self.correct is not None:
            rows = by_rows(lambda y, c: np.where(np.isnan(y), np.nan, c), self.labels, self.correct)
            return np.asarray(rows)
        if not every(lambda y: np.isnan(y) | (y == 0) | (y == 1), self.labels):
            raise BadInput(
                "labels are between 0 and 1, and nothing says which of them are right",
                next_step="hand the decisions over: Core(correct=…), or labels with a "
                "column 'correct'",
            )
        return self.labels

    @property
    def chance(self) -> Floats:
        """(n,) accuracy of guessing: one over the number of options, 0 for open questions."""
        if self.options is None:
            return np.zeros(self.n_queries)
        return np.where(self.options > 1, 1 / np.maximum(self.options, 1), 0.0)

    def clusters(self, by: str | None) -> Ints | None:
        """(n,) group of each query for a clustered bootstrap; None for single queries.

        Raises:
            BadInput: `by` is neither None, `duplicates` nor `task`.
        """
        if by is None:
            return None
        if by == "duplicates":
            return self.groups
        if by == "task":
            return np.unique(self.tasks, return_inverse=True)[1].astype(np.int64)
        raise BadInput(f"cannot cluster by {by!r}", next_step="known: duplicates, task")

    @property
    def n_queries(self) -> int:
        return len(self.query_ids)

    @property
    def n_models(self) -> int:
        return len(self.model_ids)

    @property
    def coverage(self) -> float:
        """Share of (query, model) pairs with a label."""
        known = int(sums_of(lambda y: ~np.isnan(y), self.labels).sum())
        return known / self.labels.size if self.labels.size else 0.0

    def rows(self, scheme: str, split: str) -> Ints:
        """Positions of the queries in one split.

        Raises:
            BadInput: the scheme does not exist or the split is empty.
        """
        if scheme not in self.splits:
            raise BadInput(
                f"there is no split scheme {scheme!r}",
                next_step=f"known schemes: {', '.join(sorted(self.splits)) or 'none'}",
            )
        rows = np.flatnonzero(self.splits[scheme] == split)
        if not len(rows):
            raise BadInput(
                f"split {split!r} of scheme {scheme!r} holds no query",
                next_step="give the recipe's `split` shares that leave some for it",
            )
        return rows

    def take(self, rows: Ints) -> Core:
        """The same release, only these queries, in this order."""
        if len(rows) == self.n_queries and np.array_equal(rows, np.arange(len(rows))):
            return self
        own = {name: rows_of(getattr(self, name), rows) for name in PER_QUERY}
        labels = own["labels"]
        own["correct"] = self._also(labels, lambda correct: take_rows(correct, rows))
        return replace(self, **own)

    def labelled(self) -> Core:
        """The same release, only the queries with a label of any model."""
        known = by_rows(lambda y: ~np.all(np.isnan(y), axis=1), self.labels)
        return self.take(np.flatnonzero(known))

    def place(self, model: str) -> int:
        """Column of a model.

        Raises:
            BadInput: the release has no such model.
        """
        if model not in self.model_ids:
            raise BadInput(
                f"model {model!r} is not in the release",
                next_step=f"known models: {', '.join(self.model_ids)}",
            )
        return self.model_ids.index(model)

    def _also(self, labels: Floats, part: Callable[[Floats], Floats]) -> Floats | None:
        """A part of `correct`; where that is `labels` itself, it is kept in memory once."""
        if self.correct is self.labels:
            return labels
        return None if self.correct is None else part(self.correct)

    def with_models(self, keep: tuple[str, ...]) -> Core:
        """The same release, only these models, in this order.

        A measure that is known of all of them is no longer one of `part_costs`.
        """
        at = np.array([self.model_ids.index(name) for name in keep], dtype=np.int64)

        def some(values: Floats) -> Floats:
            return np.asarray(by_rows(lambda part: part[:, at], values))

        labels = some(self.labels)
        part = {name: some(cost) for name, cost in self.part_costs.items()}
        whole = {name: cost for name, cost in part.items() if priced(cost).all()}
        return replace(
            self,
            model_ids=keep,
            labels=labels,
            costs={name: some(cost) for name, cost in self.costs.items()} | whole,
            part_costs={name: cost for name, cost in part.items() if name not in whole},
            samples=None if self.samples is None else self.samples[:, at],
            correct=self._also(labels, some),
            signals={name: values[:, at] for name, values in self.signals.items()},
            descriptors={kind: vectors[at] for kind, vectors in self.descriptors.items()},
            arms=None if self.arms is None else self.arms.take(at),
        )

    def queries(self) -> Queries:
        """What a router may see of these queries when it chooses."""
        return Queries(
            self.query_ids, self.tasks, self.embeddings, self.prompts,
            self.signals, self.hidden, self.hidden_of, self.questions,
        )  # fmt: skip

    def examples(self, validation: Examples | None = None) -> Examples:
        """What a router may see of these queries when it trains."""
        fields = (self.labels, self.costs, validation, self.descriptors, self.arms)
        return Examples(self.queries(), self.model_ids, *fields)

    def training(self, scheme: str) -> Examples:
        """Train questions of a scheme, with its validation questions if it has any."""
        has_validation = bool(np.any(self.splits[scheme] == "validation"))
        held = self.take(self.rows(scheme, "validation")).examples() if has_validation else None
        return self.take(self.rows(scheme, "train")).examples(held)


# Test questions that are also in train: with the same words, or as near-duplicates.


def verbatim(core: Core, test: Ints, train: Ints) -> Bools:
    """(t,) test questions with the words of a train question, whatever their case and space.

    A withheld text is like no other; `withheld` says whether there are any.
    """
    known = _marks(some(core.prompts, train))
    said = known.filter(pc.invert(pc.is_in(known, value_set=_marks([WITHHELD]))))
    return np.asarray(pc.is_in(_marks(some(core.prompts, test)), value_set=said), dtype=bool)


def withheld(core: Core, rows: Ints) -> bool:
    """Whether the text of some of these questions is withheld."""
    return (
        any(text == WITHHELD for text in some(core.prompts, rows)) if len(core.prompts) else False
    )


def near(core: Core, test: Ints, train: Ints) -> Bools | None:
    """(t,) test questions in a group of near-duplicates with a train question, as the
    release's `duplicates` has it; None when nobody looked for any."""
    if not core.duplicates_known:
        return None
    return np.isin(core.groups[test], core.groups[train])


def leaked(core: Core, scheme: str, test: Ints) -> Bools:
    """(t,) these questions, those that are in train in either way."""
    train = np.flatnonzero(core.splits[scheme] == "train")
    alike = near(core, test, train)
    values = np.zeros(len(test), dtype=bool) if alike is None else alike
    return values | verbatim(core, test, train) if len(core.prompts) else values


def _marks(texts: Sequence[str]) -> pa.Array:
    """16 bytes for each text."""
    return marks_of(pa.array(texts, pa.string()))


# The order in which the models of a release are read: best on its training questions first.


def not_test(splits: Mapping[str, NDArray[np.str_]], n: int) -> Ints:
    """Rows that no scheme tests on; all rows without a scheme."""
    tested = np.zeros(n, dtype=bool)
    for split in splits.values():
        tested |= split == "test"
    return np.flatnonzero(~tested) if not tested.all() else np.arange(n)


def best_first(
    label_fields: Mapping[str, Any],
    costs: Mapping[str, Floats],
    model_ids: pa.Array,
    rows: Ints,
) -> tuple[dict[str, Floats], pa.Array]:
    """(costs, model ids) with models `ranked` by these rows; matrices are permuted in place.

    Routers and rules that take the first of equals then take the better on train, the
    cheaper or a drawn one: no result depends on what models are called.
    """
    # The one row of a measure that is the same for every question stays one.
    known = {
        name: take_rows(cost, rows) if cost.strides[0] else cost[:1] for name, cost in costs.items()
    }
    measure = complete_measure(known)
    price = None if measure is None else mean_costs(known[measure])
    order = ranked(take_rows(label_fields["labels"], rows), price)
    if not np.array_equal(order, np.arange(len(order))):
        labels, correct = label_fields["labels"], label_fields["correct"]
        matrices = [labels, *(() if correct is None else (correct,))]
        matrices += [cost for cost in costs.values() if cost.strides[0]]
        for matrix in {id(item): item for item in matrices}.values():
            for part in blocks(len(matrix)):
                matrix[part] = matrix[part][:, order]
    same = {k: np.broadcast_to(v[:1, order], v.shape) for k, v in costs.items() if not v.strides[0]}
    return {**costs, **same}, model_ids.take(pa.array(order))


# The table `queries` as an evaluation reads it: by id, without what it never reads.

#: What is read of a file: no references, nor what they are compared by.
QUESTION_COLUMNS = (
    "query_id",
    "source",
    "task",
    "domain",
    "question",
    "prompt",
    "choices",
    "metadata",
)


def read_asked(queries: pa.Table | StoredTable) -> tuple[pa.Array, dict[str, Any]]:
    """Ids of n questions in order, and the fields of `Core` that `queries` holds.

    A file in order is read a row group at a time.

    Raises:
        ContractError: a file lacks a column.
    """
    if isinstance(queries, StoredTable):
        QUERIES.conform(queries.schema.empty_table(), where=str(queries.path))
    query_ids = texts_of(_column(queries, "query_id"))
    ids = pa.array(query_ids, pa.string())
    if not _in_order(ids):
        table = queries.read(QUESTION_COLUMNS) if isinstance(queries, StoredTable) else queries
        return read_asked(table.take(pc.sort_indices(ids)))
    there = set(queries.column_names)
    result: dict[str, Any] = {
        "query_ids": query_ids,
        "tasks": names_of(_column(queries, "task")),
        "domains": names_of(_column(queries, "domain")),
        "prompts": texts_of(_column(queries, "prompt")),
    }
    if "source" in there:
        result["sources"] = names_of(_column(queries, "source"))
    if "choices" in there:
        result["options"] = _options(_column(queries, "choices"))
    if {"question", "choices"} <= there:
        result["questions"] = texts_of(_questions(queries))
    if "metadata" in there:
        result["metadata"] = texts_of(map(_json_objects, _column(queries, "metadata")))
    return ids, result


def unseen_images(metadata: Sequence[str]) -> str:
    """A sentence where questions have images: routers and encoders here read text; else ""."""
    shown = sum(f'"{IMAGES}"' in text for text in metadata)
    if not shown:
        return ""
    return (
        f"{shown:,} of {len(metadata):,} questions have images, which no router saw: encoders here "
        "read texts; only embeddings of your own (`--embeddings`) can hold images."
    )


def _column(queries: pa.Table | StoredTable, name: str) -> Iterable[pa.Array]:
    for part in column_batches(queries, [name]):
        values = part.column(name)
        yield values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _questions(queries: pa.Table | StoredTable) -> Iterator[pa.Array]:
    """Questions with their options in lines below, as `embed.text_of` has them."""
    for part in column_batches(queries, ["question", "choices"]):
        question, choices = part.column("question").cast(pa.string()), part.column("choices")
        whole = pc.binary_join_element_wise(question, pc.binary_join(choices, "\n"), "\n")
        has_options = pc.greater(pc.fill_null(pc.list_value_length(choices), 0), 0)
        asked = pc.if_else(has_options, whole, question)
        # A router of texts sees that there was an image, and not which.
        marked = pc.any(pc.match_substring(asked, "[image:")).as_py()
        yield pc.replace_substring_regex(asked, PLAIN_MARK, UNSEEN) if marked else asked


def _in_order(ids: pa.Array) -> bool:
    return all(
        pc.all(pc.less_equal(ids[part], ids[part.start + 1 : part.stop + 1])).as_py() is not False
        for part in blocks(len(ids) - 1)
    )


def names_of(parts: Iterable[pa.Array]) -> Names:
    """(n,) a column of names that repeat; empty where it is null."""
    chunks = [pc.fill_null(part, "").dictionary_encode() for part in parts]
    if not chunks:
        return np.array([], dtype=np.str_)
    encoded = pa.chunked_array(chunks).unify_dictionaries()
    names = np.array(encoded.chunk(0).dictionary.to_pylist(), dtype=np.str_)
    at = np.concatenate([np.asarray(chunk.indices.to_numpy()) for chunk in encoded.chunks])
    return take_rows(names, at)


def _options(parts: Iterable[pa.Array]) -> Ints:
    """(n,) number of options of each query."""
    lengths = [pc.fill_null(pc.list_value_length(part), 0).to_numpy() for part in parts]
    return np.concatenate(lengths, dtype=np.int64) if lengths else np.array([], dtype=np.int64)


def _json_objects(said: pa.Array) -> pa.Array:
    """JSON objects; an empty one where missing."""
    known = pc.and_(pc.is_valid(said), pc.not_equal(said, ""))
    return pc.if_else(pc.fill_null(known, False), said, "{}")


# Reading: the evaluation core of a release's tables.

#: Tables that are read from disk part by part.
_IN_PARTS = ("queries", "splits", "outcomes", "verdicts", "embeddings")


def from_tables(
    queries: pa.Table | StoredTable,
    models: pa.Table,
    labels: pa.Table | None = None,
    responses: pa.Table | None = None,
    embeddings: pa.Table | StoredTable | None = None,
    splits: pa.Table | StoredTable | None = None,
    duplicates: pa.Table | None = None,
    *,
    outcomes: pa.Table | StoredTable | None = None,
    verdicts: pa.Table | StoredTable | None = None,
    model_splits: pa.Table | None = None,
    signals: pa.Table | None = None,
    entropies: pa.Table | None = None,
    hidden_states: pa.Table | None = None,
    descriptors: pa.Table | None = None,
    encoder: str | None = None,
) -> Core:
    """Core of a release or of staged tables (contracts in `schemas`).

    Args:
        labels: the label matrix in long form; rows of queries or models that
            are not in their tables are ignored.
        responses: tokens, latency and dollars; without them only the `params`
            measure can exist.
        outcomes: labels and costs in one; where they are given, `labels` and `responses`
            are not read. A table on disk is read a row group at a time.
        encoder: which embeddings to take when there are several; by default
            the first name in order.
        verdicts: needed for the oracle's correction for sampling noise, when
            responses were sampled more than once.
        signals, entropies, hidden_states, descriptors: what models show of
            themselves, for the routers that read it (`shown`).

    Raises:
        BadInput: no query or no model is left, or embeddings are incomplete.
    """
    query_ids, asked = read_asked(queries)
    model_ids = pa.array(sorted(models.column("model_id").to_pylist()), pa.string())
    n, m = len(query_ids), len(model_ids)
    if not n or not m:
        raise BadInput(
            f"nothing to evaluate: {n} queries and {m} models",
            next_step="look at `removals` for what took them away",
        )
    paid = None
    if outcomes is not None:
        decided, paid = read_outcomes(outcomes, query_ids, model_ids)
    elif labels is not None:
        decided = _of_labels(labels, query_ids, model_ids)
    else:
        raise BadInput("nothing to evaluate: there are neither labels nor outcomes")
    costs = costs_of(models, responses, paid, query_ids, model_ids)
    result = _splits(splits, query_ids)
    every, model_ids = best_first(decided, costs, model_ids, not_test(result, n))
    names = tuple(model_ids.to_pylist())
    hidden, hidden_of = states_of(hidden_states, query_ids)
    return Core(
        **asked,
        **decided,
        model_ids=names,
        costs={name: cost for name, cost in every.items() if priced(cost).all()},
        part_costs={name: cost for name, cost in every.items() if not priced(cost).all()},
        splits=result,
        groups=_groups(duplicates, query_ids),
        duplicates_known=duplicates is not None,
        unseen=_unseen(model_splits, names),
        embeddings=encoder_vectors(embeddings, query_ids, encoder),
        encoder=encoder or first_encoder(embeddings),
        samples=_samples(verdicts, outcomes if labels is None else labels, query_ids, model_ids),
        kinds=_kinds(models),
        signals=signals_of(signals, entropies, query_ids, model_ids),
        hidden=hidden,
        hidden_of=hidden_of,
        descriptors=descriptors_of(descriptors, model_ids),
        arms=_arms(models, names),
    )


def core_of(tables: Mapping[str, pa.Table], *, whole: bool = True) -> Core:
    """Core of a release's tables by name; those that an evaluation does not read are ignored.

    Queries, splits, outcomes, verdicts and embeddings on disk are read from there, part
    by part; of `queries` only the columns of `asked` are read.

    Args:
        whole: as in `check_fits`; an evaluation and a certificate work on blocks of questions.

    Raises:
        BadInput: as `from_tables`.
        OutOfMemory: there is not memory enough.
    """
    names = set(inspect.signature(from_tables).parameters) - {"encoder"}
    if "outcomes" in tables:
        names -= {"responses", "labels"}  # the largest tables
    core: dict[str, Any] = {}
    for name in sorted(names & set(tables)):
        on_disk = None
        if name in _IN_PARTS and isinstance(tables, TableStore):
            on_disk = cast(TableStore, tables).stored(name)
        core[name] = tables[name] if on_disk is None else on_disk
    if isinstance(core["queries"], StoredTable):
        vectors = core.get("embeddings")
        width = width_of(vectors) if isinstance(vectors, StoredTable) else 0
        check_fits(core["queries"].num_rows, core["models"].num_rows, width, whole=whole)
    return from_tables(**core)


def _of_labels(labels: pa.Table, query_ids: pa.Array, model_ids: pa.Array) -> dict[str, Any]:
    """The fields of `Core` that `labels` holds: what `read_outcomes` finds, without costs."""
    shape = (len(query_ids), len(model_ids))
    rows = codes(labels.column("query_id"), query_ids)
    columns = codes(labels.column("model_id"), model_ids)
    decided = labels.filter(pc.is_valid(labels.column("score")))
    correct = None
    if "correct" in labels.column_names:
        correct = dense(rows, columns, labels.column("correct").cast(pa.int8()), shape)
    unreadable = pc.equal(labels.column("decided_by"), "unreadable")
    return {
        "labels": dense(rows, columns, labels.column("score"), shape),
        "correct": correct,
        "contested": pc.mean(decided.column("contested")).as_py(),
        "unreadable": pc.mean(unreadable).as_py(),
    }


def _kinds(models: pa.Table) -> dict[str, str]:
    if "kind" not in models.column_names:
        return {}
    return dict(zip(*(models.column(c).to_pylist() for c in ("model_id", "kind")), strict=True))


#: Columns of `models` that say how an arm is asked, beside its output budget.
_AXES = ("effort", "prompt_form", "tools")


def _arms(models: pa.Table, names: tuple[str, ...]) -> Arms | None:
    """Models as arms; None where no member of the pool is an arm of a model."""
    if not {"base_model", "output_budget"} <= set(models.column_names):
        return None  # of an earlier release
    rows = {row["model_id"]: row for row in models.to_pylist()}
    axes = ("output_budget", *(item for item in _AXES if item in models.column_names))
    if not any(row["base_model"] and any(row[axis] for axis in axes) for row in rows.values()):
        return None
    asked = [(rows[name]["provider"], rows[name]["base_model"] or name) for name in names]

    def column(key: str, per: float = 1.0) -> Floats:
        values = np.array([rows[name][key] for name in names], dtype=np.float64)
        return np.asarray(values / per)

    return Arms(
        np.array([asked.index(item) for item in asked], dtype=np.float64),
        column("output_budget"), column("price_in", 1e6), column("price_out", 1e6),
    )  # fmt: skip


def _splits(splits: pa.Table | StoredTable | None, query_ids: pa.Array) -> dict[str, Names]:
    result: dict[str, Names] = {}
    if splits is None:
        return result
    if isinstance(splits, StoredTable):
        SPLITS.conform(splits.schema.empty_table(), where=str(splits.path))
    for part in column_batches(splits, ["scheme", "query_id", "split"]):
        at = positions_within(part.column("query_id"), query_ids)
        schemes, names = (names_of([part.column(k)]) for k in ("scheme", "split"))
        for scheme in np.unique(schemes).tolist():
            if scheme not in result:
                result[scheme] = allocate((len(query_ids),), "<U10")
                result[scheme][:] = ""
            here = (schemes == scheme) & (at >= 0)
            result[scheme][at[here]] = names[here]
    return dict(sorted(result.items()))


def _groups(duplicates: pa.Table | None, query_ids: pa.Array) -> Ints:
    """Group number per query; several encoders or thresholds: the first in order counts."""
    groups = np.arange(len(query_ids), dtype=np.int64)
    if duplicates is None or not duplicates.num_rows:
        return groups
    kinds = (duplicates.column(name).to_pylist() for name in ("encoder", "threshold"))
    encoder, threshold = min(zip(*kinds, strict=True))
    part = duplicates.filter(
        (pc.field("encoder") == encoder) & (pc.field("threshold") == threshold)
    )
    at = codes(part.column("query_id"), query_ids)
    names = np.unique(
        np.array(part.column("group_id").to_pylist(), dtype=np.str_), return_inverse=True
    )[1]
    # Numbers of groups start past those of the queries that are in none.
    groups[at[at >= 0]] = len(groups) + names[at >= 0]
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _unseen(model_splits: pa.Table | None, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    unseen: dict[str, list[str]] = {}
    if model_splits is not None:
        for row in model_splits.to_pylist():
            unseen.setdefault(row["scheme"], [])
            if row["split"] == "unseen" and row["model_id"] in names:
                unseen[row["scheme"]].append(row["model_id"])
    return {scheme: tuple(sorted(models)) for scheme, models in sorted(unseen.items())}


def _samples(
    verdicts: pa.Table | StoredTable | None,
    labels: pa.Table | StoredTable | None,
    query_ids: pa.Array,
    model_ids: pa.Array,
) -> Floats | None:
    """(n, m, s) score per sample by the scorer that decided the label."""
    if verdicts is None or labels is None or not verdicts.num_rows:
        return None
    if not pc.any(pc.greater(_some(verdicts, ["sample"]).column(0), 0)).as_py():
        return None  # one answer each, as in most releases: the ids need not be read
    decided = _some(labels, ["query_id", "model_id", "decided_by"])
    decided = decided.rename_columns(["query_id", "model_id", "scorer"])
    wanted = ["query_id", "model_id", "scorer", "sample", "score"]
    judged = _some(verdicts, wanted).join(
        decided, keys=["query_id", "model_id", "scorer"], join_type="left semi"
    )
    if not judged.num_rows:
        return None
    sample = judged.column("sample").to_numpy().astype(np.int64)
    n_samples = int(sample.max()) + 1
    if n_samples < 2:
        return None
    rows = codes(judged.column("query_id"), query_ids)
    columns = codes(judged.column("model_id"), model_ids)
    m = len(model_ids)
    cell = np.where(columns >= 0, columns * n_samples + sample, -1)
    flat = dense(rows, cell, judged.column("score"), (len(query_ids), m * n_samples))
    return flat.reshape(len(query_ids), m, n_samples)


def _some(table: pa.Table | StoredTable, columns: list[str]) -> pa.Table:
    return table.read(columns) if isinstance(table, StoredTable) else table.select(columns)
