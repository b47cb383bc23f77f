"""Pseudo-specialists: simulated models that excel on one task, marked as what they are.

RouterBench+ injects them to see whether a router finds a specialist where one
exists (section 4.3 and Table 3). They have labels, stated costs and no text, and
never count among real models.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.arrays import Floats, ratio
from routeyard.pipelines.common.matrix import LabelMatrix, label_matrix
from routeyard.pipelines.curate.rule import Curated, Rule, refused
from routeyard.pipelines.curate.task_analysis import known_mean
from routeyard.schemas import LABELS, MODELS, RESPONSES

# What an injected model costs: the recipe's figures, else the medians of the real pool.

#: Columns of `models`, and of `responses`, that an injected model gets.
PER_MODEL = ("params_b", "price_in", "price_out", "price_date")
PER_ANSWER = ("prompt_tokens", "completion_tokens", "latency_s", "cost_usd")

Costs = dict[str, dict[str, Any]]


def specialist_costs(
    tables: Mapping[str, pa.Table], real: Sequence[str], stated: Mapping[str, Any]
) -> Costs:
    """{name: {value, from}} of an injected model; a value is None when no real model has one.

    A median of answers is that of the models' medians, so that a model with many
    answers counts once. USD per answer follow from prices and tokens where both
    are known, else they are the pool's median.

    Args:
        real: Ids of the models whose medians are taken.
        stated: The recipe's figures by name; None takes the median.
    """
    costs = {
        name: _median(tables, real, name) if value is None else {"value": value, "from": "stated"}
        for name, value in stated.items()
    }
    if costs["price_in"]["value"] is None and costs["price_out"]["value"] is None:
        costs["price_date"] = {"value": None, "from": "unknown"}
    names = ("price_in", "price_out", "prompt_tokens", "completion_tokens")
    price_in, price_out, prompt, completion = values = [costs[name]["value"] for name in names]
    costs["cost_usd"] = _median(tables, real, "cost_usd")
    if None not in values:
        usd = (prompt * price_in + completion * price_out) / 1e6
        costs["cost_usd"] = {"value": usd, "from": "prices and tokens"}
    return costs


def _median(tables: Mapping[str, pa.Table], real: Sequence[str], name: str) -> dict[str, Any]:
    source = tables["models"] if name in PER_MODEL else tables.get("responses")
    if source is None:
        return {"value": None, "from": "unknown"}
    wanted = pc.is_in(source.column("model_id"), value_set=pa.array(real, pa.string()))
    known = source.filter(wanted).select(["model_id", name]).to_pandas().dropna()
    if known.empty:
        return {"value": None, "from": "unknown"}
    if name == "price_date":
        return {"value": known[name].max(), "from": "median"}
    value = float(known.groupby("model_id")[name].median().median())
    return {"value": round(value) if name.endswith("_tokens") else value, "from": "median"}


def simulated_responses(
    tables: Mapping[str, pa.Table], labels: Sequence[Mapping[str, Any]], costs: Costs
) -> pa.Table | None:
    """`responses` with one row per label of an injected model: costs, a given score and no text.

    None where there is no table of responses or nothing of an answer is known.
    """
    per_answer = {name: costs[name]["value"] for name in PER_ANSWER}
    if (
        "responses" not in tables
        or not labels
        or not any(v is not None for v in per_answer.values())
    ):
        return None
    rows = [
        {
            **per_answer,
            "query_id": label["query_id"],
            "model_id": label["model_id"],
            "sample": 0,
            "status": "ok",
            "attempts": 0,
            "given_score": label["score"],
            "cost_source": None if per_answer["cost_usd"] is None else "stated",
        }
        for label in labels
    ]
    return pa.concat_tables([RESPONSES.conform(tables["responses"]), RESPONSES.from_rows(rows)])


def target_tasks(
    matrix: LabelMatrix,
    max_mean_accuracy: float,
    max_gap: float,
    min_queries: int,
    limit: int | None,
) -> list[str]:
    """Tasks that a specialist could lift: hard on average, no model far ahead, large enough.

    Hardest first; of equals the larger one, then the one of the first question.
    """
    right, count = matrix.by_task()
    values = ratio(right, count)
    sizes = np.bincount(matrix.task, minlength=len(matrix.tasks))
    numbers: list[tuple[float, int, str, str]] = []
    for t, name in enumerate(matrix.tasks):
        scores = values[:, t][~np.isnan(values[:, t])]
        if not len(scores) or sizes[t] < min_queries:
            continue
        mean = float(scores.mean())
        if mean <= max_mean_accuracy and float(scores.max()) - mean <= max_gap:
            first = min(matrix.queries[row] for row in np.flatnonzero(matrix.task == t).tolist())
            numbers.append((mean, -int(sizes[t]), first, name))
    return [name for *_, name in sorted(numbers)[:limit]]


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
            what one costs, so the medians of the real models replace whatever
            is not given here, and the figures (and the card) name them.
        price_in: USD per million tokens, like `price_out`; `price_date` says whose
            prices they are.
        prompt_tokens: Tokens of one answer, like `completion_tokens`; with
            `latency_s` they are written to simulated responses without a text, so that
            every cost measure of the pool exists for the injected models too.
    """
    matrix = label_matrix(tables, where="pseudo_specialists")
    _check(tasks, matrix, gain, cap)
    chosen: dict[str, float | None] = (
        dict(tasks) if isinstance(tasks, Mapping) else dict.fromkeys(tasks)
    )
    if not chosen:
        names = target_tasks(matrix, max_mean_accuracy, max_gap, min_queries, limit)
        chosen = dict.fromkeys(names)
    mean, best = _mean_and_best(matrix)
    labels: list[dict[str, Any]] = []
    injected: list[dict[str, Any]] = []
    for task, explicit in chosen.items():
        t, model = matrix.tasks.index(task), f"pseudo-specialist:{task}"
        if model in tables["models"].column("model_id").to_pylist():
            raise refused(
                "pseudo_specialists", f"the pool already holds {model!r}", "inject each task once"
            )
        if explicit is None and np.isnan(mean[t]):
            raise refused(
                "pseudo_specialists",
                f"no real model has labels on task {task!r}: its best accuracy is unknown",
                f"set the accuracy: tasks: {{{task}: 0.8}}",
            )
        # The cap never takes away what a real model already reaches.
        aim = explicit if explicit is not None else min(best[t] + gain, max(cap, best[t]))
        for other, name in enumerate(matrix.tasks):
            share = aim if other == t else mean[other]
            # Where no real model was labelled there is no mean, so no label either.
            if not np.isnan(share):
                labels += _labels(matrix, other, model, float(share), f"{seed}|{model}|{name}")
        n = int((matrix.task == t).sum())
        injected.append(
            {
                "model_id": model,
                "task": task,
                "accuracy": math.floor(aim * n + 0.5) / n,
                "best_real": None if np.isnan(mean[t]) else float(best[t]),
                "queries": n,
            }
        )
    figures: dict[str, Any] = {"injected": injected}
    if not injected:
        figures["warning"] = (
            f"no pseudo-specialist was injected: no task of {min_queries} questions has a mean "
            f"accuracy up to {max_mean_accuracy:g} and no model more than {max_gap:g} above it; "
            "name 'tasks', or widen the thresholds"
        )
        return Curated(figures=figures)
    if not tasks and limit is not None and len(injected) < limit:
        figures["warning"] = (
            f"{len(injected)} of {limit} pseudo-specialists were injected: no other task is hard "
            "and without a leading model; name 'tasks', or widen the thresholds"
        )
    stated = {
        "params_b": params_b, "price_in": price_in, "price_out": price_out,
        "price_date": price_date, "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens, "latency_s": latency_s,
    }  # fmt: skip
    costs = specialist_costs(tables, matrix.models, stated)
    per_model = {name: costs[name]["value"] for name in PER_MODEL}
    models = [
        {"model_id": item["model_id"], "kind": "pseudo_specialist", "simulated": True, **per_model}
        for item in injected
    ]
    added = {
        "models": pa.concat_tables([MODELS.conform(tables["models"]), MODELS.from_rows(models)]),
        "labels": pa.concat_tables([LABELS.conform(tables["labels"]), LABELS.from_rows(labels)]),
    }
    responses = simulated_responses(tables, labels, costs)
    if responses is not None:
        added["responses"] = responses
    return Curated(added=added, figures={**figures, "costs": costs})


def _mean_and_best(matrix: LabelMatrix) -> tuple[Floats, Floats]:
    """(t,) mean and best accuracy of the real models on each task; NaN and −∞ without labels."""
    values = ratio(*matrix.by_task())
    best = np.where(np.isnan(values), -np.inf, values).max(axis=0, initial=-np.inf)
    return known_mean(values, axis=0), best


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
        raise refused(
            "pseudo_specialists",
            f"there is no task {unknown[0]!r}",
            f"tasks: {', '.join(matrix.tasks[:20])}",
        )
    explicit = tasks.values() if isinstance(tasks, Mapping) else ()
    shares = [cap, *(share for share in explicit if share is not None)]
    if gain < 0 or not all(0 <= share <= 1 for share in shares):
        raise refused(
            "pseudo_specialists",
            "gain is at least 0, cap and accuracies lie in [0, 1]",
            "write 0.25 for 25 points",
        )


RULE = Rule("pseudo_specialists", pseudo_specialists)
