"""What routers are compared with, measured like them: oracles, single models, chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.evaluate.router_result import RouterResult
from routeyard.pipelines.evaluate.rows import MetricRow, column_metric
from routeyard.pipelines.matrix.memmap import allocate, take_rows
from routeyard.pipelines.matrix.ranking import levels
from routeyard.pipelines.matrix.row_blocks import by_rows, distinct, side_by_side
from routeyard.pipelines.metrics.baselines import random_mean, task_oracle
from routeyard.pipelines.metrics.evaluation_data import EvaluationData
from routeyard.pipelines.metrics.selection import best


def reference_scores(data: EvaluationData) -> dict[str, Floats]:
    """(n, m) scores of the per-query and of the per-task oracle."""
    test = data.test
    chosen = task_oracle(test.labels, test.tasks, data.price, data.order)
    per_task = allocate(test.labels.shape)
    for task in distinct(test.tasks):
        at = np.flatnonzero(test.tasks == task)
        per_task[at] = np.nan_to_num(levels(take_rows(test.labels, at)), nan=-1.0)
    # Levels say what the sweep needs; where labels are missing they may rank a replacement wrongly.
    off = np.flatnonzero(best(per_task, data.available(), data.order) != chosen)
    per_task[off, chosen[off]] = take_rows(per_task, off).max(axis=1) + 1e-9
    oracle = by_rows(lambda y: np.nan_to_num(y, nan=-1.0), test.labels)
    return {"oracle": oracle, "task oracle": per_task}


def plain_references(data: EvaluationData) -> list[MetricRow]:
    """Accuracy and cost of every single model, of the best of them, and of uniform chance.

    Those of a model are over the questions that it has a label for, and for its cost a known
    cost; `n` says how many.
    """
    y, split, ids = data.test.labels, data.split, data.test.model_ids
    columns = {f"single:{name}": y[:, k] for k, name in enumerate(ids)}
    columns["best single"] = y[:, data.single]
    columns["uniform random"] = random_mean(data.test.labels)
    replicates = data.draws.means(side_by_side(list(columns.values())))
    why = "no label in the split"
    rows = [
        column_metric(name, "accuracy", split, column, replicates[:, k], why)
        for k, (name, column) in enumerate(columns.items())
    ]
    if data.leaked is not None and data.leaked.any():
        column = np.where(data.leaked, np.nan, columns["best single"])
        drawn = data.draws.means(column[:, None])[:, 0]
        name, why = "accuracy_without_leaks", "every test question with a label is in train"
        rows.append(column_metric("best single", name, split, column, drawn, why))
    return rows + cost_references(data)


def cost_references(data: EvaluationData) -> list[MetricRow]:
    """Mean cost of every single model and of the best of them, over the answers that have a
    label and a known cost."""
    ids, rows = data.test.model_ids, []
    for name in data.prices:
        cost = data.own_costs(name)
        paid = data.draws.means(cost)
        why = "no answer in the split has a label and a known cost"
        of = [
            *((f"single:{model}", k) for k, model in enumerate(ids)),
            ("best single", data.single),
        ]
        rows += [
            column_metric(called, f"mean_cost[{name}]", data.split, cost[:, k], paid[:, k], why)
            for called, k in of
        ]
    return rows


def agreement(data: EvaluationData, measured: Sequence[RouterResult]) -> list[MetricRow]:
    """Share of questions on which a router chooses the best generalist; 1 is collapse onto it.

    Over the questions that it has a label for: elsewhere it cannot be chosen.
    """
    rows = []
    met = ~np.isnan(data.own(data.single))
    for one in measured:
        same = np.where(met, one.choice == data.single, np.nan)
        drawn = data.draws.means(same[:, None])[:, 0]
        why = "the best single model has no label in the split"
        name = "agreement_with_generalist"
        rows.append(column_metric(one.router, name, data.split, same, drawn, why))
        rows += _by_task(data, one.router, same)
    return rows


def _by_task(data: EvaluationData, router: str, same: Floats) -> list[MetricRow]:
    """The same within every task (RouterBench+, Table 4); nothing to add where there is one."""
    tasks = data.test.tasks
    names = distinct(tasks)
    if len(names) < 2:
        return []
    columns = by_rows(
        lambda task, one: np.where(task[:, None] == names[None, :], one[:, None], np.nan),
        tasks,
        same,
    )
    drawn = data.draws.means(columns)
    why = "the best single model has no label in the task"
    return [
        column_metric(
            router,
            f"agreement_with_generalist[{name}]",
            data.split,
            columns[:, k],
            drawn[:, k],
            why,
        )
        for k, name in enumerate(names)
    ]
