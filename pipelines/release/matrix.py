"""Long tables → query × model matrices through integer codes (never SQL PIVOT)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.errors import SourceError
from pipelines.io.untrusted import RELEASED, bounded

#: Labels once more, as one row per query and one column per model.
WIDE = "data/labels_wide.parquet"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Values of shape (len(queries), len(models)); NaN where nothing is known."""

    values: np.ndarray[Any, Any]
    queries: list[str]
    models: list[str]

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
    q = _codes(rows.column("query_id"), queries)
    m = _codes(rows.column("model_id"), models)
    known = (q >= 0) & (m >= 0)
    numbers = rows.column(value).cast(pa.float64()).to_numpy()
    values[q[known], m[known]] = numbers[known]
    return Matrix(values, list(queries), list(models))


def wide_schema(models: Sequence[str]) -> pa.Schema:
    """`query_id` and a float32 column per model."""
    columns = [pa.field(model, pa.float32()) for model in models]
    return pa.schema([pa.field("query_id", pa.string()), *columns])


def wide_rows(queries: pa.Array, scores: np.ndarray[Any, Any], models: Sequence[str]) -> pa.Table:
    """Labels of some queries as query × model: float32 scores, null where there is none."""
    columns = [
        pa.array(scores[:, m].astype(np.float32), from_pandas=True) for m in range(len(models))
    ]
    return pa.Table.from_arrays([queries, *columns], schema=wide_schema(models))


def read_wide(path: Path) -> Matrix:
    """The matrix of scores that `write_wide` wrote, float32.

    Raises:
        SourceError: the file is damaged.
    """
    import pyarrow.parquet as pq

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


def _codes(column: pa.ChunkedArray, names: Sequence[str]) -> np.ndarray[Any, Any]:
    """Position of each value among `names`, -1 when it is none of them."""
    found = pc.index_in(column, value_set=pa.array(names, pa.string()))
    codes: np.ndarray[Any, Any] = pc.fill_null(found, -1).to_numpy()
    return codes
