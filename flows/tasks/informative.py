"""Collection in rounds (`collect.strategy: informative`): ask, label, choose what to ask next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flows import console
from flows.tasks.collect import ask_task
from flows.tasks.label import label_stage
from flows.tracking.log import log
from flows.tracking.run import call
from flows.workspace.stage_folders import PROBING, StageResult
from flows.workspace.tables import read
from pipelines.collect.informative import RankedModels, Z, collect_informatively
from pipelines.dense_slice import dense_rows
from pipelines.release.matrix import scatter
from schemas.recipe import Recipe


def ask_in_rounds(
    recipe: Recipe, root: Path, queries: StageResult, pool: StageResult, *, jobs: int
) -> StageResult:
    """Responses to what the rounds asked; the figures hold estimates beside plain means.

    Each round labels what is there. What a round asked lies in the ledger, so that a run
    that was stopped replays its rounds without a call and goes on.
    """
    table = read(queries, "queries")
    ids = table.column("query_id").to_pylist()
    models = [model.model_id for model in recipe.pool.models]
    _, tasks = np.unique(table.column("task").to_pylist(), return_inverse=True)
    collected: StageResult | None = None

    def answer(asked: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        nonlocal collected
        rows = [np.flatnonzero(asked[:, m]).tolist() for m in range(len(models))]
        collected = call(
            ask_task, recipe=recipe, root=str(root), queries=queries, pool=pool, rows=rows
        )
        labelled = label_stage(recipe, root, queries, collected, jobs=jobs)
        labels = read(labelled, "labels")
        if not PROBING.get():
            said = f"{int(asked.sum()):,} of {asked.size:,} pairs asked so far"
            console.line("rounds", said)
            log(recipe.name, "collect", said)
        return scatter(labels, "score", queries=ids, models=models, dtype=np.float64).values

    ranking = collect_informatively(
        tasks, len(models), recipe.collect.informative, answer, always=dense_rows(table)
    )
    assert collected is not None  # the pilot asks at least two questions of every model
    figures = {**collected.figures, "informative": figures_of(ranking, models, recipe)}
    return collected.model_copy(update={"figures": figures})


def figures_of(ranking: RankedModels, models: list[str], recipe: Recipe) -> dict[str, Any]:
    """JSON-ready: per model the plain mean, the weighted estimate and its interval, and
    what each round asked."""
    plan = recipe.collect.informative
    half = Z * ranking.standard_error
    rows = [
        {
            "model_id": model,
            "asked": int(ranking.asked[:, m].sum()),
            "plain": _number(ranking.plain[m]),
            "weighted": _number(ranking.weighted[m]),
            "low": _number(ranking.weighted[m] - half[m]),
            "high": _number(ranking.weighted[m] + half[m]),
        }
        for m, model in enumerate(models)
    ]
    return {
        "resolve": plan.resolve,
        "asked": int(ranking.asked.sum()),
        "pairs": int(ranking.asked.size),
        "unresolved": int(ranking.unresolved(plan.resolve).sum()) // 2,
        "models": rows,
        "rounds": [
            {"models": len(one.models), "questions": len(one.drawn), "unresolved": one.unresolved}
            for one in ranking.rounds
        ],
    }


def _number(value: float) -> float | None:
    # Twelve digits: the last ones of a product of matrices depend on the machine.
    return float(f"{value:.12g}") if np.isfinite(value) else None
