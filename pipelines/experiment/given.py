"""A router as a table of predictions: for people who have scores and no Python to hand over."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from routeyard.pipelines.arrays import Bools, Floats, Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.untrusted import bounded
from routeyard.pipelines.matrix.dense import codes, dense
from routeyard.pipelines.routers.base import Examples, Queries

#: Column of what a router itself costs on each question.
DECISION = "decision_cost_usd"
#: Columns of names.
_IDS = frozenset({"query_id", "model_id", "router"})


def read_predictions(path: Path) -> pa.Table:
    """A CSV or Parquet file about questions and models; ids are texts, each column is there once.

    Raises:
        BadInput: there is no such table, a column name occurs twice, or an id is not a string.
    """
    if not path.is_file():
        raise BadInput(
            "there is no such predictions file",
            where=str(path),
            next_step="give a CSV or Parquet with query_id, model_id and, if known, score",
        )
    try:
        # As they are written: 0012 is no number, and NA may be a name.
        told = csv.ConvertOptions(column_types=dict.fromkeys(_IDS, pa.string()))
        parquet = path.suffix == ".parquet"
        table = (
            pq.read_table(bounded(path)) if parquet else csv.read_csv(path, convert_options=told)
        )
    except pa.ArrowException as error:
        raise BadInput(f"this is no table: {error}", where=str(path)) from error
    names = Counter(table.column_names)
    for name, times in names.items():
        if times > 1:
            raise BadInput(
                f"the column {name!r} occurs {times} times in the table",
                where=str(path),
                next_step="leave one of them",
            )
    for name in _IDS & set(names):
        try:
            ids = table.column(name).cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadInput(f"the column {name!r} holds no ids: {error}", where=str(path)) from error
        table = table.set_column(table.column_names.index(name), name, ids)
    return table


class Predictions:
    """Looks scores up instead of computing them.

    Three layouts are understood:

    * `query_id, model_id, score`: a score for every query and model;
    * `query_id` and one column per model: the same, wide;
    * `query_id, model_id`: only the choice. It counts as score 1 for the
      chosen model and 0 for the others, so under a growing weight of cost it
      gives way to the cheapest.

    `decision_cost_usd`, in any of them, is what the router itself costs on the question: it is
    added to the costs of what it routes.

    Attributes:
        unread: Columns that are none of these.
    """

    def __init__(self, table: pa.Table, name: str):
        self.name = name
        self._table = table
        self.unread: list[str] = []

    def fit(self, train: Examples) -> Predictions:
        self._models = pa.array(train.model_ids, pa.string())
        long = "model_id" in self._table.column_names
        read = ["query_id", DECISION, *(["model_id", "score"] if long else train.model_ids)]
        self.unread = [name for name in self._table.column_names if name not in read]
        return self

    def decision_usd(self, queries: Queries) -> Floats | None:
        """(n,) USD of deciding about each question; None where the table states none.

        Raises:
            BadInput: a cost is missing, negative or no number, or a question has several.
        """
        if DECISION not in self._table.column_names:
            return None
        ids = pa.array(queries.query_ids, pa.string())
        rows = codes(self._table.column("query_id").cast(pa.string()), ids)
        values = self._numbers(DECISION).to_numpy(zero_copy_only=False)
        use = rows >= 0
        low, high = np.full(len(ids), np.inf), np.full(len(ids), -np.inf)
        with np.errstate(invalid="ignore"):  # a cost that is missing
            np.minimum.at(low, rows[use], values[use])
            np.maximum.at(high, rows[use], values[use])
        wrong = np.flatnonzero(~(np.isfinite(low) & (low >= 0) & (low == high)))
        if len(wrong):
            raise self._broken(
                f"has no one {DECISION} of 0 or more for {len(wrong)} questions, "
                f"such as {ids[int(wrong[0])]}"
            )
        return low

    def scores(self, queries: Queries) -> Floats:
        """Raises BadInput: a query, model or score is missing, or a cell is not a number."""
        table, ids = self._table, pa.array(queries.query_ids, pa.string())
        if "query_id" not in table.column_names:
            raise self._broken("has no column 'query_id'")
        rows = codes(table.column("query_id").cast(pa.string()), ids)
        missing = sorted(set(range(len(ids))) - set(rows.tolist()))
        if missing:
            raise self._broken(
                f"lacks {len(missing)} of the {len(ids)} questions, such as {ids[missing[0]]}"
            )
        shape = (len(ids), len(self._models))
        if "model_id" in table.column_names:
            columns = codes(table.column("model_id").cast(pa.string()), self._models)
            if np.any(columns < 0):
                wrong = table.column("model_id")[int(np.argmin(columns))].as_py()
                raise self._broken(f"names a model that is not in the release: {wrong!r}")
            if "score" not in table.column_names:
                use = rows >= 0
                self._once(rows, use, "chooses more than one model for a question")
                out = np.zeros(shape)
                out[rows[use], columns[use]] = 1.0
                return out
            self._once(rows * shape[1] + columns, rows >= 0, "scores a model twice on a question")
            out = dense(rows, columns, self._numbers("score"), shape)
        else:
            absent = sorted(set(self._models.to_pylist()) - set(table.column_names))
            if absent:
                raise self._broken(f"has no column for model {absent[0]!r}")
            use = rows >= 0
            self._once(rows, use, "holds a question twice")
            out = np.full(shape, np.nan)
            for column, model in enumerate(self._models.to_pylist()):
                values = self._numbers(model).to_numpy(zero_copy_only=False)
                out[rows[use], column] = values[use]
        if np.isnan(out).any():
            row, column = (int(k) for k in np.argwhere(np.isnan(out))[0])
            raise self._broken(
                f"has no score for model {self._models[column]} on question {ids[row]}"
            )
        return out

    def _once(self, keys: Ints, use: Bools, says: str) -> None:
        """Of two rows about the same nobody knows which is meant."""
        if len(np.unique(keys[use])) < int(use.sum()):
            raise self._broken(says)

    def _numbers(self, column: str) -> pa.ChunkedArray:
        try:
            return self._table.column(column).cast(pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self._broken(f"column {column!r} holds something that is no number") from error

    def _broken(self, what: str) -> BadInput:
        return BadInput(
            f"the predictions table {what}",
            where=self.name,
            next_step="columns: query_id, model_id, score; or query_id and one column per model; "
            f"or query_id, model_id for choices alone; and {DECISION} in every row or in none",
        )
