"""Pseudo-specialists: simulated models that excel on one task, marked as what they are.

RouterBench+ injects them to see whether a router finds a specialist where one
exists (section 4.3 and Table 3). They have labels, stated costs and no text, and
never count among real models.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.curate.pseudo_specialist_costs import simulated_responses, stated_costs
from pipelines.curate.rule import Curated, Rule, removals
from pipelines.errors import RecipeError
from pipelines.matrix.labels import LabelMatrix, accuracy, label_matrix
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
    params_b: float | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    price_date: str | None = None,
    prompt_tokens: int | None = None,
    completion_tokens: int | None = None,
    latency_s: float | None = None,
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
        params_b: Parameters of an injected model, in 10^9. The paper does not say
            what one costs, so the medians of the real models stand for whatever
            is not given here, and the figures (and the card) name them.
        price_in: USD per million tokens, like `price_out`; `price_date` says whose
            prices they are.
        prompt_tokens: Tokens of one answer, like `completion_tokens`; with
            `latency_s` they stand on simulated responses without a text, so that
            every cost measure of the pool exists for the injected models too.
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
    levels = _Levels(matrix, mean, best, n_models, gain, cap, seed)
    made = [_injected(levels, task, explicit, tables) for task, explicit in chosen.items()]
    stated = stated_costs(
        tables, matrix.models,
        {
            "params_b": params_b, "price_in": price_in, "price_out": price_out,
            "price_date": price_date, "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens, "latency_s": latency_s,
        },
    )  # fmt: skip
    models = [
        {
            "model_id": one.model, "kind": "pseudo_specialist", "simulated": True,
            "params_b": stated.values["params_b"], "price_in": stated.values["price_in"],
            "price_out": stated.values["price_out"], "price_date": stated.values["price_date"],
        }
        for one in made
    ]  # fmt: skip
    labels = [row for one in made for row in one.labels]
    added = {
        "models": pa.concat_tables([MODELS.conform(tables["models"]), MODELS.from_rows(models)]),
        "labels": pa.concat_tables([LABELS.conform(tables["labels"]), LABELS.from_rows(labels)]),
    }
    responses = simulated_responses(tables, labels, stated)
    if responses is not None:
        added["responses"] = responses
    figures: dict[str, Any] = {"injected": [one.figures for one in made]}
    if made:
        figures["costs"] = stated.figures()
    else:
        figures["warning"] = (
            f"no pseudo-specialist was injected: no task of {min_queries} questions has a mean "
            f"accuracy up to {max_mean_accuracy:g} and no model more than {max_gap:g} above it; "
            "name 'tasks', or widen the thresholds"
        )
    return Curated(
        kept={},
        removed=removals("curate.pseudo_specialists", "model", []),
        added=added if made else {},
        figures=figures,
    )


@dataclass(frozen=True)
class _Levels:
    """(t,) mean and best accuracy of the real models on each task, and what is added to it."""

    matrix: LabelMatrix
    mean: NDArray[np.float64]
    best: NDArray[np.float64]
    n_models: NDArray[np.int64]
    gain: float
    cap: float
    seed: int


@dataclass(frozen=True)
class _Injected:
    model: str
    labels: list[dict[str, Any]]
    figures: dict[str, Any]


def _injected(
    levels: _Levels, task: str, explicit: float | None, tables: Mapping[str, pa.Table]
) -> _Injected:
    matrix, t = levels.matrix, levels.matrix.tasks.index(task)
    model = f"pseudo-specialist:{task}"
    if model in tables["models"].column("model_id").to_pylist():
        raise RecipeError(
            f"the pool already holds {model!r}",
            where="curate: pseudo_specialists",
            next_step="inject each task once",
        )
    if explicit is None and not levels.n_models[t]:
        raise RecipeError(
            f"no real model has labels on task {task!r}: its best accuracy is unknown",
            where="curate: pseudo_specialists",
            next_step=f"set the accuracy: tasks: {{{task}: 0.8}}",
        )
    top = levels.best[t]
    # The cap never takes away what a real model already reaches.
    aim = explicit if explicit is not None else min(top + levels.gain, max(levels.cap, top))
    labels: list[dict[str, Any]] = []
    for other, name in enumerate(matrix.tasks):
        share = aim if other == t else levels.mean[other]
        # Where no real model was labelled there is no mean, so no label either.
        if not math.isnan(share):
            labels += _labels(matrix, other, model, float(share), f"{levels.seed}|{model}|{name}")
    n = int((matrix.task == t).sum())
    return _Injected(
        model,
        labels,
        {
            "model_id": model,
            "task": task,
            "accuracy": math.floor(aim * n + 0.5) / n,
            "best_real": None if not levels.n_models[t] else float(top),
            "queries": n,
        },
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
