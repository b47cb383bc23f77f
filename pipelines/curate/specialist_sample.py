"""Sampling by specialist score: keep what can tell routers apart."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.matrix import label_matrix
from routeyard.pipelines.curate.rule import Curated, Rule, removing
from routeyard.pipelines.curate.search import query_vectors
from routeyard.pipelines.curate.task_analysis import (
    Budget,
    model_costs,
    specialist_scores,
    task_similarity,
)


def specialist_sample(
    tables: Mapping[str, pa.Table],
    *,
    demanding: float = 0.05,
    quota: int | None = None,
    floor: int | None = None,
    redundant: float | None = None,
    budget: Budget = "auto",
    weighting: Literal["query", "task"] = "query",
    encoder: str | None = None,
    seed: int = 0,
) -> Curated:
    """Tasks by specialist score (RouterBench+, sections 4.2 and 5.1), and quotas where wanted.

    Tasks are ordered by specialist score, highest first. The paper gives no
    quotas, so none is set: without `quota` and `redundant` every question stays
    and the figures say which tasks demand a specialist. A task whose mean
    embedding is as close as `redundant` to a task already kept is redundant: of
    it only `floor` questions stay. Of equal scores the larger task comes first, then a draw by
    its questions, never a name.

    Args:
        demanding: Specialist score at or above which a task is kept whole.
        quota: Questions kept of a task that a generalist serves as well; None for all.
        floor: Questions that every task keeps at least (or all it has); None for none.
        budget: What the budgets of the score are in; see `tasks.model_costs`.
        redundant: Cosine of mean embeddings; None skips the check (no embeddings needed).
        seed: Questions are drawn by the hash of seed and query_id.
    """
    matrix = label_matrix(tables, where="specialist_sample")
    scores = specialist_scores(matrix, model_costs(tables, budget), weighting=weighting)
    n = len(matrix.tasks)
    close = np.zeros((n, n), dtype=bool)
    if redundant is not None and n:
        vectors, _, _ = query_vectors(tables, encoder, where="specialist_sample")
        close = task_similarity(vectors, matrix.task, n) >= redundant
    # A task without a score cannot be shown to need a specialist: it comes last.
    known = ~np.isnan(scores.score)
    drawn: dict[int, list[int]] = {
        t: sorted(
            np.flatnonzero(matrix.task == t).tolist(),
            key=lambda row: _draw(seed, matrix.queries[row]),
        )
        for t in range(n)
    }
    rank = sorted(
        range(n),
        key=lambda t: (
            -scores.score[t] if known[t] else np.inf,
            -len(drawn[t]),
            _draw(seed, matrix.queries[drawn[t][0]]),
        ),
    )
    kept_tasks: list[int] = []
    away: list[tuple[str, str, str]] = []
    plan: list[dict[str, Any]] = []
    for t in rank:
        rows = drawn[t]
        score = float(scores.score[t]) if known[t] else None
        twin = next((other for other in kept_tasks if close[t, other]), None)
        room, why = len(rows), ""
        if twin is not None:
            decision, room = "redundant_task", floor or 0
            why = f"its task {matrix.tasks[t]!r} is redundant with {matrix.tasks[twin]!r}"
        elif score is not None and score >= demanding:
            decision = "demanding"
        else:
            decision = "generalist_sufficient"
            room = len(rows) if quota is None else max(quota, floor or 0)
            shown = "no specialist score" if score is None else f"specialist score {score:.4f}"
            why = f"its task {matrix.tasks[t]!r} has {shown} and was cut to {room}"
        if twin is None:
            kept_tasks.append(t)
        away += [(matrix.queries[row], decision, why) for row in rows[room:]]
        plan.append(
            {
                "task": matrix.tasks[t],
                "decision": decision,
                "specialist_score": score,
                "queries": len(rows),
                "kept": min(len(rows), room),
                "redundant_with": None if twin is None else matrix.tasks[twin],
            }
        )
    figures = {
        "tasks": plan,
        "budget": budget,
        "budgets": len(scores.budgets),
        "unlimited_budget": scores.unlimited,
        "models_without_cost": list(scores.without_cost),
    }
    return removing(tables, "queries", sorted(away), rule="specialist_sample", figures=figures)


def _draw(seed: int, query: str) -> tuple[bytes, str]:
    return hashlib.sha256(f"specialist_sample|{seed}|{query}".encode()).digest(), query


RULE = Rule("specialist_sample", specialist_sample, reads=("embeddings", "labels"))
