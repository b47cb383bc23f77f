"""`labels_wide.parquet`: labels once more, one row per query and one column per model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.errors import SourceError
from pipelines.io.untrusted import RELEASED, bounded
from pipelines.matrix.dense import Matrix

WIDE = "data/labels_wide.parquet"


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
