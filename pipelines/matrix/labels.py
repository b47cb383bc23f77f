"""Labels as a dense matrix with a mask: missing is missing, never zero."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Bools, Floats, Ints, ratio
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.row_groups import column_batches, positions
from routeyard.schemas import StoredTable


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
    names = asked.column("task").to_pylist()
    tasks = sorted(set(names))
    position = {name: place for place, name in enumerate(tasks)}
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
    task = np.array([position[name] for name in names], dtype=np.int64)
    return LabelMatrix(models, queries, task, tasks, correct, known)


def accuracy(right: Ints, count: Ints) -> Floats:
    """right / count, NaN where there is no label: no accuracy is not accuracy 0."""
    return ratio(right, count)


def _whole(table: pa.Table | StoredTable) -> pa.Table:
    return table if isinstance(table, pa.Table) else table.read()


def in_drawn_order(matrix: LabelMatrix) -> LabelMatrix:
    """The models in an order drawn by which questions each is right and wrong on.

    It decides between models of equal score and accuracy; only models with equal labels are left
    to their names, and those are interchangeable.
    """
    digests = (hashlib.sha256(query.encode()).digest() for query in matrix.queries)
    drawn = np.array([np.frombuffer(one[:16], np.uint64) for one in digests]).reshape(-1, 2)
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
