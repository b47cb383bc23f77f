"""Long tables to dense matrices, by integer codes.

A pivot in SQL or pandas takes 10 to 100 s on 27 M labels; dictionary-encoding
the two keys and scattering takes about one. Outcomes are read a row group at a time, so that
no long table is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Array, Floats, Ints, ratio
from routeyard.pipelines.io.row_groups import column_batches, positions, positions_within
from routeyard.pipelines.matrix.memmap import allocate, blocks
from routeyard.schemas import OUTCOMES, StoredTable
from routeyard.schemas.notebook import html_card

if TYPE_CHECKING:
    import pandas as pd

_IDS = ["query_id", "model_id"]
_VALUES = [
    "score", "correct", "decided_by", "contested", "cost_usd", "prompt_tokens",
    "completion_tokens", "latency_s", "n_responses",
]  # fmt: skip


def codes(values: pa.ChunkedArray, known: pa.Array) -> Ints:
    """Position of every value in `known`; −1 where it is not listed."""
    found = pc.index_in(values, value_set=known)
    return np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int64)


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
    found = {
        "labels": labels,
        "correct": labels if same else correct,
        "contested": contested / decided if decided else None,
        "unreadable": unreadable / said if said else None,
    }
    return found, {name: out[name] for name in names[2:]} if answered else {}


def _floats(part: pa.RecordBatch, name: str) -> Floats:
    values = part.column(name)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    found: Floats = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found
