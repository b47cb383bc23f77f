"""Labels as a dense matrix with a mask: missing is missing, never zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.errors import BadInput

Bools = NDArray[np.bool_]


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
    task: NDArray[np.int64]
    tasks: Sequence[str]
    correct: Bools
    known: Bools

    def by_task(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(m, t) numbers of right answers and of labels."""
        order = np.argsort(self.task, kind="stable")
        starts = np.searchsorted(self.task[order], np.arange(len(self.tasks)))
        right = np.add.reduceat(self.correct[:, order], starts, axis=1, dtype=np.int64)
        count = np.add.reduceat(self.known[:, order], starts, axis=1, dtype=np.int64)
        return right, count


def label_matrix(
    tables: Mapping[str, pa.Table], *, where: str, kinds: Sequence[str] = ("real",)
) -> LabelMatrix:
    """The matrix of the models of the given kinds over all queries.

    Raises:
        BadInput: there are no labels, or a label names an unknown query.
    """
    labels = tables.get("labels")
    if labels is None:
        raise BadInput(
            f"{where} needs labels, and there are none",
            where="tables['labels']",
            next_step="run the label stage first",
        )
    models_table = tables["models"]
    wanted = pc.is_in(models_table.column("kind"), value_set=pa.array(list(kinds)))
    models = sorted(models_table.filter(wanted).column("model_id").to_pylist())
    queries = tables["queries"].column("query_id").to_pylist()
    names = tables["queries"].column("task").to_pylist()
    tasks = sorted(set(names))
    position = {name: place for place, name in enumerate(tasks)}
    correct = np.zeros((len(models), len(queries)), dtype=bool)
    known = np.zeros_like(correct)
    decided = labels.filter(pc.is_valid(labels.column("correct")))
    row = pc.index_in(decided.column("model_id"), value_set=pa.array(models, pa.string()))
    column = pc.index_in(decided.column("query_id"), value_set=pa.array(queries, pa.string()))
    if column.null_count:
        stray = decided.filter(pc.is_null(column)).column("query_id").to_pylist()
        raise BadInput(
            f"{where}: {len(stray)} label(s) belong to no query",
            where=", ".join(stray[:3]),
            next_step="label the queries that are in the table",
        )
    # Models of other kinds (pseudo-specialists) have no row here.
    inside = pc.is_valid(row).to_numpy(zero_copy_only=False)
    i = pc.fill_null(row, 0).to_numpy()[inside]
    j = column.to_numpy()[inside]
    known[i, j] = True
    correct[i, j] = decided.column("correct").to_numpy()[inside].astype(bool)
    task = np.array([position[name] for name in names], dtype=np.int64)
    return LabelMatrix(models, queries, task, tasks, correct, known)


def accuracy(right: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """right / count, NaN where there is no label: no accuracy is not accuracy 0."""
    out = np.full(right.shape, np.nan)
    np.divide(right, count, out=out, where=count > 0)
    return out
