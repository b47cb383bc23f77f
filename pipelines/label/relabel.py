"""What a new labelling changes: labels, ranks of models, ranks of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from routeyard.pipelines.label.audit.questions import question
from routeyard.schemas import VERDICTS

_OTHERS = ("xverify:", "judge:", "human:")


@dataclass(frozen=True)
class LabelChanges:
    """The difference between two labellings of the same responses.

    Attributes:
        labels: query_id, model_id, task, score and decided_by before and after; one
            row for each label whose score, decision or decider differs.
        models: model_id, accuracy, rank and decided labels before and after; one row per model
            whose rank or accuracy differs. Accuracy is that of the decided labels.
        tasks: the same for tasks, ranked by mean score over models (1 = easiest).
    """

    labels: pa.Table
    models: pa.Table
    tasks: pa.Table

    @property
    def figures(self) -> Mapping[str, int]:
        def moved(table: pa.Table, name: str) -> int:
            sides = (table.column(f"{name}_{side}").to_pylist() for side in ("before", "after"))
            return sum(a != b for a, b in zip(*sides, strict=True))

        return {
            "labels": self.labels.num_rows,
            "flipped": moved(self.labels, "correct"),
            "model_ranks": moved(self.models, "rank"),
            "task_ranks": moved(self.tasks, "rank"),
        }


def keep_others(stored: pa.Table, ruled: pa.Table) -> pa.Table:
    """New rule verdicts, with those of verifiers, judges and people carried over.

    They cost money or time and do not change when a rule does.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.register("stored", stored)
        wanted = " OR ".join(f"starts_with(scorer, '{prefix}')" for prefix in _OTHERS)
        kept = connection.sql(
            f"SELECT * FROM stored WHERE {wanted} ORDER BY {', '.join(VERDICTS.key)}"
        ).to_arrow_table()
    return VERDICTS.check(pa.concat_tables([ruled, VERDICTS.conform(kept)]))


def changes(queries: pa.Table, before: pa.Table, after: pa.Table) -> LabelChanges:
    """Compare two `labels` tables; pairs that only one of them has count as changed."""
    import duckdb

    with duckdb.connect() as connection:
        connection.register("queries", queries.select(["query_id", "task"]))
        connection.register("before_labels", before)
        connection.register("after_labels", after)
        labels = connection.sql(question("changed_labels")).to_arrow_table()
        return LabelChanges(labels, _ranks(connection, "model_id"), _ranks(connection, "task"))


def _ranks(connection: Any, by: str) -> pa.Table:
    sides = {}
    for side in ("before", "after"):
        sides[side] = f"""
            SELECT {by}, avg(score) AS accuracy, count(score) AS labelled,
                   rank() OVER (ORDER BY round(avg(score), 12) DESC NULLS LAST) AS place
            FROM {side}_labels JOIN queries USING (query_id) GROUP BY {by}
        """
    return connection.sql(
        f"""
        SELECT {by}, b.accuracy AS accuracy_before, a.accuracy AS accuracy_after,
               b.place AS rank_before, a.place AS rank_after,
               b.labelled AS labelled_before, a.labelled AS labelled_after
        FROM ({sides["before"]}) b FULL JOIN ({sides["after"]}) a USING ({by})
        WHERE (b.accuracy, b.place) IS DISTINCT FROM (a.accuracy, a.place)
        ORDER BY {by}
        """
    ).to_arrow_table()
