"""Task analysis: specialist score, similarity of tasks, difficulty, ranks of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import Floats, Ints, Vectors, ratio
from routeyard.pipelines.common.matrix import LabelMatrix, in_drawn_order
from routeyard.schemas.contracts import register


@dataclass(frozen=True, slots=True)
class Specialist:
    """Specialist scores of all tasks.

    Attributes:
        tasks: Task names, sorted.
        score: (t,) NaN where no budget allows a comparison.
        budgets: Cost budgets used; one `inf` when no model has a cost.
        generalists: Model id of the generalist at each budget.
        skipped_budgets: Budgets at which only one model is affordable.
        without_cost: Models left out because their cost is unknown.
        unlimited: No model has a cost: one unlimited budget was used.
    """

    tasks: Sequence[str]
    score: Floats
    budgets: Sequence[float]
    generalists: Sequence[str]
    skipped_budgets: int
    without_cost: Sequence[str]
    unlimited: bool


def specialist_scores(
    matrix: LabelMatrix,
    cost: Mapping[str, float | None],
    *,
    budgets: Sequence[float] | None = None,
    weighting: Literal["query", "task"] = "query",
) -> Specialist:
    """How much a task gains from another model than the best generalist (RouterBench+).

    score(t) = mean over budgets b of [ max over m ≠ g(b) with cost(m) ≤ b of
    ACC(m, t) − ACC(g(b), t) ], where g(b) has the best overall accuracy within b.
    A budget at which the generalist has no label in t is left out of t's mean.

    Args:
        cost: USD per query (or any one unit) by model; None when unknown.
        budgets: Default: the distinct costs.
        weighting: Overall accuracy per `query`, or as the mean over `task`s.
            Ties go to the lower cost, then to what the labels draw: never to a name.
    """
    right, count = matrix.by_task()
    by_task = ratio(right, count)
    overall = overall_accuracy(right, count, weighting)
    # A cost that is not known becomes NaN.
    prices = np.array([cost.get(model) for model in matrix.models], dtype=np.float64)
    unlimited = bool(np.isnan(prices).all())
    if unlimited:
        prices = np.zeros(len(prices))
        steps: list[float] = [float("inf")]
    else:
        steps = sorted(set(budgets if budgets is not None else prices[~np.isnan(prices)].tolist()))
    gains: list[Floats] = []
    used: list[float] = []
    generalists: list[str] = []
    for budget in steps:
        # A model without a cost or without labels cannot be compared.
        inside = np.flatnonzero((prices <= budget) & ~np.isnan(overall))
        if len(inside) < 2:
            continue
        level = [(-overall[m], prices[m]) for m in inside.tolist()]
        first = [m for m, item in zip(inside.tolist(), level, strict=True) if item == min(level)]
        best = first[0] if len(first) == 1 else _drawn(matrix, first)
        others = by_task[inside[inside != best]]
        strongest = np.where(np.isnan(others), -np.inf, others).max(axis=0)
        gain = np.where(np.isinf(strongest), np.nan, strongest) - by_task[best]
        gains.append(gain)
        used.append(float(budget))
        generalists.append(matrix.models[best])
    score = np.full(len(matrix.tasks), np.nan)
    lacking = [m for m, price in zip(matrix.models, prices, strict=True) if np.isnan(price)]
    return Specialist(
        matrix.tasks,
        known_mean(np.stack(gains), axis=0) if gains else score,
        used,
        generalists,
        len(steps) - len(used),
        lacking,
        unlimited,
    )


def _drawn(matrix: LabelMatrix, among: Sequence[int]) -> int:
    """One of these models, drawn by what it is right and wrong on."""
    order = in_drawn_order(matrix).models
    return min(among, key=lambda m: order.index(matrix.models[m]))


def known_mean(values: Floats, *, axis: int) -> Floats:
    """Mean over an axis without its NaN; NaN where nothing else is."""
    return ratio(np.nansum(values, axis=axis), (~np.isnan(values)).sum(axis=axis))


def overall_accuracy(right: Ints, count: Ints, weighting: Literal["query", "task"]) -> Floats:
    """(m,) accuracy over all labels, or the mean over the tasks that have labels."""
    if weighting == "query":
        return ratio(right.sum(axis=1), count.sum(axis=1))
    return known_mean(ratio(right, count), axis=1)


def difficulty(matrix: LabelMatrix) -> tuple[Floats, Floats]:
    """1 − share of models that are right: (t,) mean over a task's queries, and (q,).

    NaN for a query without labels; it does not enter its task's mean.
    """
    by_query = 1 - ratio((matrix.correct & matrix.known).sum(axis=0), matrix.known.sum(axis=0))
    valid = ~np.isnan(by_query)
    n = np.bincount(matrix.task[valid], minlength=len(matrix.tasks))
    total = np.bincount(matrix.task[valid], by_query[valid], minlength=len(matrix.tasks))
    return ratio(total, n), by_query


def average_ranks(matrix: LabelMatrix) -> tuple[Floats, Ints]:
    """(m,) mean rank over tasks (1 is best, ties share the mean), and tasks won.

    A model without labels in a task has no rank there; a model that wins nearly
    every task dominates the pool.
    """
    values = ratio(*matrix.by_task())
    ranks = np.full_like(values, np.nan)
    for task, column in enumerate(values.T):  # `scipy.stats` alone takes a second to import
        known = np.flatnonzero(~np.isnan(column))
        better = column[known, None] < column[known]
        equal = column[known, None] == column[known]
        ranks[known, task] = better.sum(axis=1) + (equal.sum(axis=1) + 1) / 2
    top = np.where(np.isnan(values), -np.inf, values).max(axis=0)
    return known_mean(ranks, axis=1), (values == top).sum(axis=1)


def task_similarity(vectors: Vectors, task: Ints, n_tasks: int) -> Floats:
    """(t, t) cosine of the tasks' mean embeddings; NaN for a task without queries."""
    sums = np.zeros((n_tasks, vectors.shape[1]))
    np.add.at(sums, task, vectors)
    norms = np.linalg.norm(sums, axis=1)
    unit = np.full_like(sums, np.nan)
    np.divide(sums, norms[:, None], out=unit, where=norms[:, None] > 0)
    return np.clip(unit @ unit.T, -1, 1)


Budget = Literal["auto", "usd", "price", "params"]


def cost_kind(tables: Mapping[str, pa.Table]) -> Literal["usd", "price", "params"] | None:
    """Which of `usd`, `price` and `params` budgets are in: the first that any model has."""
    known = (
        kind
        for kind, costs in _COSTS.items()
        if any(cost is not None for cost in costs(tables).values())
    )
    return next(known, None)


def model_costs(tables: Mapping[str, pa.Table], by: Budget = "auto") -> dict[str, float | None]:
    """What each model costs, in one unit for all: the budgets of the specialist score.

    Args:
        by: `usd`, the mean metered USD per priced response; `price`, the sum of
            its list prices; `params`, its parameters in 10^9, which RouterBench+
            takes (appendix F: prices vary and are not always known); `auto`, the
            first of them that any model has. They are not comparable, so a model
            without the one taken has no cost.
    """
    kind = cost_kind(tables) if by == "auto" else by
    if kind is not None:
        return _COSTS[kind](tables)
    return dict.fromkeys(tables["models"].column("model_id").to_pylist())


def _metered(tables: Mapping[str, pa.Table]) -> dict[str, float | None]:
    import duckdb

    metered: dict[str, float] = {}
    if "responses" in tables:
        with duckdb.connect() as connection:
            register(connection, "responses", tables["responses"])
            metered = dict(
                connection.execute(
                    "SELECT model_id, sum(cost_usd::DECIMAL(38, 12))::DOUBLE / count(cost_usd) "
                    "FROM responses WHERE cost_usd IS NOT NULL GROUP BY 1 ORDER BY 1"
                ).fetchall()
            )
    return {model: metered.get(model) for model in tables["models"].column("model_id").to_pylist()}


def _summed(tables: Mapping[str, pa.Table], columns: Sequence[str]) -> dict[str, float | None]:
    """Model → sum of columns of `models`; None where one of them is missing."""
    return {
        row["model_id"]: None if None in (items := [row.get(c) for c in columns]) else sum(items)
        for row in tables["models"].to_pylist()
    }


_COSTS: Mapping[
    Literal["usd", "price", "params"], Callable[[Mapping[str, pa.Table]], dict[str, float | None]]
] = {
    "usd": _metered,
    "price": partial(_summed, columns=("price_in", "price_out")),
    "params": partial(_summed, columns=("params_b",)),
}
