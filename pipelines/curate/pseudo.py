"""Pseudo-specialists: simulated models that excel on one task, marked as what they are.

RouterBench+ injects them to see whether a router finds a specialist where one
exists. They have labels and no text, and never count among real models.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.curate.matrix import LabelMatrix, accuracy, label_matrix
from pipelines.curate.result import Curated, removals
from pipelines.curate.rule import Rule
from pipelines.errors import RecipeError
from schemas import LABELS, MODELS


def target_tasks(
    matrix: LabelMatrix,
    *,
    max_mean_accuracy: float,
    max_gap: float,
    min_queries: int,
    limit: int | None,
) -> list[str]:
    """Tasks that a specialist could lift: hard on average, no model far ahead, large enough.

    Hardest first; a tie goes to the smaller name.
    """
    right, count = matrix.by_task()
    values = accuracy(right, count)
    sizes = np.bincount(matrix.task, minlength=len(matrix.tasks))
    found: list[tuple[float, str]] = []
    for t, name in enumerate(matrix.tasks):
        scores = values[:, t][~np.isnan(values[:, t])]
        if not len(scores) or sizes[t] < min_queries:
            continue
        mean = float(scores.mean())
        if mean <= max_mean_accuracy and float(scores.max()) - mean <= max_gap:
            found.append((mean, name))
    return [name for _, name in sorted(found)[:limit]]


def pseudo_specialists(
    tables: Mapping[str, pa.Table],
    *,
    tasks: Sequence[str] | Mapping[str, float | None] = (),
    gain: float = 0.25,
    cap: float = 0.95,
    price_in: float | None = None,
    price_out: float | None = None,
    price_date: str | None = None,
    max_mean_accuracy: float = 0.5,
    max_gap: float = 0.2,
    min_queries: int = 100,
    limit: int | None = 3,
    seed: int = 0,
) -> Curated:
    """One simulated model per target task, with labels exact to one question.

    On its task it is right on round(a·n) of the task's n queries, a = min(best
    real model + `gain`, `cap`) (the RouterBench+ injections gained 28.8, 24.1 and
    26.5 points), drawn uniformly with the seed. On every other task its accuracy
    is the mean of the real models', in the same way.

    Args:
        tasks: Target tasks, or {task: accuracy} to set it; empty chooses by the
            thresholds `max_mean_accuracy`, `max_gap` and `min_queries`.
        price_in: USD per million tokens, null unless given, like `price_out`;
            `price_date` says whose prices they are. No response has a cost.
    """
    matrix = label_matrix(tables, where="pseudo_specialists")
    _check(tasks, matrix, gain, cap)
    chosen: dict[str, float | None] = (
        dict(tasks) if isinstance(tasks, Mapping) else dict.fromkeys(tasks)
    )
    if not chosen:
        names = target_tasks(
            matrix,
            max_mean_accuracy=max_mean_accuracy,
            max_gap=max_gap,
            min_queries=min_queries,
            limit=limit,
        )
        chosen = dict.fromkeys(names)
    right, count = matrix.by_task()
    values = accuracy(right, count)
    known = ~np.isnan(values)
    n_models = known.sum(axis=0)
    mean = np.full(len(matrix.tasks), np.nan)
    np.divide(np.where(known, values, 0).sum(axis=0), n_models, out=mean, where=n_models > 0)
    best = np.where(known, values, -np.inf).max(axis=0) if len(values) else mean
    models: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    figures: list[dict[str, Any]] = []
    existing = set(tables["models"].column("model_id").to_pylist())
    for task, explicit in chosen.items():
        model = f"pseudo-specialist:{task}"
        if model in existing:
            raise RecipeError(
                f"the pool already holds {model!r}",
                where="curate: pseudo_specialists",
                next_step="inject each task once",
            )
        t = matrix.tasks.index(task)
        if explicit is None and not n_models[t]:
            raise RecipeError(
                f"no real model has labels on task {task!r}: its best accuracy is unknown",
                where="curate: pseudo_specialists",
                next_step=f"set the accuracy: tasks: {{{task}: 0.8}}",
            )
        # The cap never takes away what a real model already reaches.
        aim = explicit if explicit is not None else min(best[t] + gain, max(cap, best[t]))
        models.append(
            {
                "model_id": model, "kind": "pseudo_specialist", "simulated": True,
                "price_in": price_in, "price_out": price_out, "price_date": price_date,
            }
        )  # fmt: skip
        for other, name in enumerate(matrix.tasks):
            share = aim if other == t else mean[other]
            # Where no real model was labelled there is no mean, so no label either.
            if not math.isnan(share):
                labels += _labels(matrix, other, model, float(share), f"{seed}|{model}|{name}")
        n = int((matrix.task == t).sum())
        figures.append(
            {
                "model_id": model,
                "task": task,
                "accuracy": math.floor(aim * n + 0.5) / n,
                "best_real": None if not n_models[t] else float(best[t]),
                "queries": n,
            }
        )
    added = {
        "models": pa.concat_tables([MODELS.conform(tables["models"]), MODELS.from_rows(models)]),
        "labels": pa.concat_tables([LABELS.conform(tables["labels"]), LABELS.from_rows(labels)]),
    }
    return Curated(
        kept={},
        removed=removals("curate.pseudo_specialists", "model", []),
        added=added,
        figures={"injected": figures},
    )


def _labels(
    matrix: LabelMatrix, task: int, model: str, share: float, salt: str
) -> list[dict[str, Any]]:
    """Labels of one task, right on exactly round(share · n), drawn by hash."""
    ids = [matrix.queries[row] for row in np.flatnonzero(matrix.task == task).tolist()]
    drawn = sorted(
        ids, key=lambda query: (hashlib.sha256(f"{salt}|{query}".encode()).digest(), query)
    )
    right = set(drawn[: math.floor(share * len(ids) + 0.5)])
    return [
        {
            "query_id": query,
            "model_id": model,
            "score": float(query in right),
            "correct": query in right,
            "decided_by": "pseudo_specialist",
            "contested": False,
            "n_samples": 0,
        }
        for query in ids
    ]


def _check(tasks: Any, matrix: LabelMatrix, gain: float, cap: float) -> None:
    unknown = sorted(set(tasks) - set(matrix.tasks))
    if unknown:
        raise RecipeError(
            f"there is no task {unknown[0]!r}",
            where="curate: pseudo_specialists",
            next_step=f"tasks: {', '.join(matrix.tasks[:20])}",
        )
    shares = (
        [cap, *(v for v in tasks.values() if v is not None)]
        if isinstance(tasks, Mapping)
        else [cap]
    )
    if gain < 0 or not all(0 <= share <= 1 for share in shares):
        raise RecipeError(
            "gain is at least 0, cap and accuracies lie in [0, 1]",
            where="curate: pseudo_specialists",
            next_step="write 0.25 for 25 points",
        )


RULE = Rule("pseudo_specialists", pseudo_specialists)
