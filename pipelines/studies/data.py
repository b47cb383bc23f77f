"""Tables about data: counts per source, sizes of benchmarks, near-duplicates, close tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from routeyard.pipelines.curate.dedup.rule import dedup
from routeyard.pipelines.curate.dedup.vectors import query_vectors
from routeyard.pipelines.curate.task_analysis import task_similarity
from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.studies.study import StudyCell


def source_counts(context: StudyContext) -> Sequence[StudyCell]:
    counted = Counter(context.tables["queries"].column("source").to_pylist())
    cells = [StudyCell(name, "questions", float(n), "count") for name, n in counted.most_common()]
    return [*cells, StudyCell("total", "questions", float(sum(counted.values())), "count")]


def sizes(context: StudyContext) -> Sequence[StudyCell]:
    core, name = context.core, context.release
    cells = [
        StudyCell(name, "models", float(core.n_models), "count"),
        StudyCell(name, "questions", float(core.n_queries), "count"),
        StudyCell(name, "tasks", float(len(set(core.tasks.tolist()))), "count"),
        StudyCell(name, "labels known", core.coverage, "percent"),
    ]
    for scheme, split in core.splits.items():
        for part in ("train", "validation", "test"):
            count = float(np.sum(split == part))
            cells.append(StudyCell(name, f"{part} ({scheme})", count, "count"))
    return [*cells, StudyCell(name, "cost", text=", ".join(core.costs) or "none")]


def duplicates(context: StudyContext) -> Sequence[StudyCell]:
    found = context.tables.get("duplicates")
    if found is None or not found.num_rows:
        found = dedup(dict(context.tables), keep="all").added["duplicates"]
    groups: Counter[str] = Counter()
    conflicts = set()
    for row in found.to_pylist():
        groups[row["group_id"]] += 1
        if row["label_conflict"]:
            conflicts.add(row["group_id"])
    n, members = len(groups), sum(groups.values())
    total = context.tables["queries"].num_rows
    name = context.release
    return [
        StudyCell(name, "groups", float(n), "count"),
        StudyCell(name, "questions in groups", float(members), "count"),
        StudyCell(name, "share of questions", members / max(total, 1), "percent"),
        StudyCell(name, "mean size", members / n if n else None, note=None if n else "no groups"),
        StudyCell(name, "largest", float(max(groups.values(), default=0)), "count"),
        StudyCell(
            name, "groups with conflicting labels", len(conflicts) / n if n else None, "percent",
            note=None if n else "no groups",
        ),
    ]  # fmt: skip


def similarity_of_tasks(context: StudyContext) -> Sequence[StudyCell]:
    matrix = context.matrix
    vectors, _, _ = query_vectors(dict(context.tables), None, where="study task_similarity")
    close = task_similarity(vectors, matrix.task, len(matrix.tasks))
    return [
        StudyCell(one, other, float(close[a, b]))
        for a, one in enumerate(matrix.tasks)
        for b, other in enumerate(matrix.tasks)
    ]
