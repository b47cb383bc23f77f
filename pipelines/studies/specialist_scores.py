"""Specialist score of each task: what another model gains over the best generalist."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.curate.task_analysis import model_costs, specialist_scores
from pipelines.studies.context import StudyContext
from pipelines.studies.study import Study, StudyCell


def cells(context: StudyContext) -> Sequence[StudyCell]:
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


STUDY = Study(
    name="specialist_scores",
    paper="who-routes-the-router",
    item="Figure 2, Figure 4, Figure 9",
    title="Specialist score of each task, and how many tasks ask for a specialist",
    cells=cells,
    needs=("labels", "tasks"),
    rows="task",
    plot="bars",
    plot_column="specialist score",
    printed={
        # Section 4.5: 38 tasks of CARROT's Open LLM Leaderboard data, ifeval left out.
        "open_llm_leaderboard": {
            ("tasks below 0", "number"): 28,
            ("tasks from 0 to 0.05", "number"): 3,
            ("tasks from 0.05", "number"): 7,
        }
    },
    notes=("Mean over cost budgets; where no model has a cost, one unlimited budget.",),
    printed_notes=(
        "The paper takes Qwen2.5-72B-Instruct as the generalist; here it is the most accurate one.",
    ),
)
