"""What a new labelling changes: labels, ranks of models, ranks of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.label.audit.questions import answer
from routeyard.pipelines.scorers.scorer import FAMILIES
from routeyard.schemas import VERDICTS


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
    others = pc.match_substring_regex(stored.column("scorer"), f"^({'|'.join(FAMILIES)})")
    kept = stored.filter(others).sort_by([(name, "ascending") for name in VERDICTS.key])
    return VERDICTS.check(pa.concat_tables([ruled, VERDICTS.conform(kept)]))


def changes(queries: pa.Table, before: pa.Table, after: pa.Table) -> LabelChanges:
    """Compare two `labels` tables; pairs that only one of them has count as changed."""
    sides = {"before_labels": before, "after_labels": after}
    sides["queries"] = queries.select(["query_id", "task"])
    models, tasks = (answer("changed_ranks", by=by, **sides) for by in ("model_id", "task"))
    return LabelChanges(answer("changed_labels", **sides), models, tasks)
