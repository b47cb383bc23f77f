"""Tables about a pool: dominance of its models, specialist scores of the tasks (RouterBench+)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from routeyard.pipelines.curate.task_analysis import average_ranks, model_costs, specialist_scores
from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.studies.study import StudyCell


def dominance(context: StudyContext) -> Sequence[StudyCell]:
    """Mean rank of each model over tasks (section 4.3 and 4.5), and how many it wins."""
    ranks, won = average_ranks(context.matrix)
    bands = context.intervals(lambda matrix: average_ranks(matrix)[0])
    out = []
    for place in np.argsort(np.where(np.isnan(ranks), np.inf, ranks), kind="stable").tolist():
        name, (low, high) = context.matrix.models[place], bands[place]
        out.append(StudyCell(name, "mean rank", float(ranks[place]), "number", low, high))
        out.append(StudyCell(name, "tasks won", float(won[place]), "count"))
    return out


def specialists(context: StudyContext) -> Sequence[StudyCell]:
    """What another model gains over the best generalist on each task (section 4.5)."""
    cost = model_costs(context.tables)
    found = specialist_scores(context.matrix, cost)
    bands = context.intervals(lambda matrix: specialist_scores(matrix, cost).score)
    sizes = np.bincount(context.matrix.task, minlength=len(found.tasks))
    out = []
    order = np.argsort(np.where(np.isnan(found.score), np.inf, -found.score), kind="stable")
    for t in order.tolist():
        name, (low, high) = found.tasks[t], bands[t]
        out.append(StudyCell(name, "specialist score", float(found.score[t]), "points", low, high))
        out.append(StudyCell(name, "questions", float(sizes[t]), "count"))
    score = found.score[~np.isnan(found.score)]
    for heading, inside in (
        ("tasks below 0", score < 0),
        ("tasks from 0 to 0.05", (score >= 0) & (score < 0.05)),
        ("tasks from 0.05", score >= 0.05),
    ):
        out.append(StudyCell(heading, "number", float(inside.sum()), "count"))
    return out
