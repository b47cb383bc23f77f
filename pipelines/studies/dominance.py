"""Dominance: mean rank of each model over tasks (RouterBench+, section 4.3 and 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.curate.task_analysis import average_ranks
from pipelines.studies.context import StudyContext
from pipelines.studies.study import Study, StudyCell


def cells(context: StudyContext) -> Sequence[StudyCell]:
    ranks, won = average_ranks(context.matrix)
    bands = context.intervals(lambda matrix: average_ranks(matrix)[0])
    out = []
    for place in np.argsort(np.where(np.isnan(ranks), np.inf, ranks), kind="stable").tolist():
        name, (low, high) = context.matrix.models[place], bands[place]
        out.append(StudyCell(name, "mean rank", float(ranks[place]), "number", low, high))
        out.append(StudyCell(name, "tasks won", float(won[place]), "count"))
    return out


STUDY = Study(
    name="dominance",
    paper="who-routes-the-router",
    item="Table 2, Figure 5",
    title="Mean rank of each model over tasks; a mean rank near 1 is a pool that one model rules",
    cells=cells,
    needs=("labels", "tasks"),
    plot="bars",
    plot_column="mean rank",
    printed={
        # Figure 5: the five most dominant models of CARROT's Open LLM Leaderboard data.
        "open_llm_leaderboard": {
            ("Qwen/Qwen2-72B-Instruct", "mean rank"): 2.97,
            ("meta-llama/Meta-Llama-3.1-70B-Instruct", "mean rank"): 3.80,
            ("Qwen/Qwen2.5-72B-Instruct", "mean rank"): 4.93,
            ("alpindale/WizardLM-2-8x22B", "mean rank"): 5.70,
            ("Qwen/QwQ-32B-Preview", "mean rank"): 6.09,
        }
    },
    notes=("Ties share the mean of their ranks. Intervals: questions redrawn within each task.",),
    printed_notes=("The paper leaves ifeval out; which 16,852 questions it took is not known.",),
)
