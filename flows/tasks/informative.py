"""Collection in rounds (`collect.strategy: informative`): ask, label, choose what to ask next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from routeyard.flows.tracking.log import log
from routeyard.flows.workspace.stage_folders import BuildContext, StageResult
from routeyard.flows.workspace.tables import read
from routeyard.pipelines.arrays import Array
from routeyard.schemas.recipe import Collect, Pool

if TYPE_CHECKING:
    from routeyard.pipelines.collect.informative import RankedModels


def ask_in_rounds(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    complete: Callable[[list[list[int]]], tuple[StageResult, StageResult]],
) -> StageResult:
    """Responses to what the rounds asked; the figures hold estimates beside plain means.

    What a round asked is in the ledger, so that a run that was stopped replays its rounds
    without a call and goes on.

    Args:
        complete: Rows of the questions per model → results of collect and label for them.
    """
    from routeyard.pipelines.collect.informative import collect_informatively
    from routeyard.pipelines.dense_slice import dense_rows
    from routeyard.pipelines.matrix.dense import scatter

    table = read(queries, "queries")
    ids = table.column("query_id").to_pylist()
    models = [model.model_id for model in pool.models]
    _, tasks = np.unique(table.column("task").to_pylist(), return_inverse=True)
    responses: StageResult | None = None

    def answer(asked: Array) -> Array:
        nonlocal responses
        rows = [np.flatnonzero(asked[:, m]).tolist() for m in range(len(models))]
        responses, labels = complete(rows)
        if not responses.reused:
            from routeyard.flows import console

            text = f"{int(asked.sum()):,} of {asked.size:,} pairs asked so far"
            console.line("rounds", text)
            log(context.benchmark, "collect", text)
        scores = read(labels, "labels")
        return scatter(scores, "score", queries=ids, models=models, dtype=np.float64).values

    ranking = collect_informatively(
        tasks, len(models), collect.informative, answer, always=dense_rows(table)
    )
    assert responses is not None  # the pilot asks at least two questions of every model
    figures = {**responses.figures, "informative": figures_of(ranking, models, collect)}
    return responses.model_copy(update={"figures": figures})


def figures_of(ranking: RankedModels, models: list[str], collect: Collect) -> dict[str, Any]:
    """JSON-ready: per model the plain mean, the weighted estimate and its interval, and
    what each round asked."""
    from routeyard.pipelines.collect.informative import Z

    plan = collect.informative
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
