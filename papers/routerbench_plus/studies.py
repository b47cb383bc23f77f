"""Studies of the RouterBench+ paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.common.pool import OOD_GROUPS
from routeyard.pipelines.curate.prune import prune
from routeyard.pipelines.curate.specialist_sample import specialist_sample
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.studies.items import cells_of, dominance, measure_of
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext, Unit

LEARNED = ("knn", "kmeans", "mf", "mlp")
#: The two areas that the paper holds out (appendix I.2).
HELD_OUT = ("math", "medical")
#: Cosine from which two tasks count as one (recipe `routerbench_plus`).
REDUNDANT = 0.95
#: Of 112 models the paper keeps 82 (appendix H).
KEPT = 82 / 112
#: Heading → metric and unit. `audc_budget` is the paper's area: the mean accuracy over budgets.
_COLUMNS: Mapping[str, tuple[str, Unit]] = {
    "accuracy": ("accuracy", "percent"),
    "mean over budgets": ("audc_budget[{measure}]", "percent"),
    "peak": ("peak_accuracy[{measure}]", "percent"),
}


def _evaluation(context: StudyContext, core: Core | None = None, **how: object) -> Evaluation:
    """The four routers on the release, or on a core made of it."""
    if core is None and not how:
        return context.evaluation(LEARNED)
    makers = {name: context.make(name) for name in context.routers or LEARNED}
    return context.compared(makers, core, **how)


def _side_by_side(context: StudyContext, changed: Core, after: str) -> Sequence[StudyCell]:
    """Each router's columns on the release as it is and on the changed core."""
    measure = measure_of(context)
    cells: list[StudyCell] = []
    evaluations = {"original": _evaluation(context), after: _evaluation(context, changed)}
    for heading, done in evaluations.items():
        columns = {
            metric: (f"{name}, {heading}", unit)
            for name, (metric, unit) in _COLUMNS.items()
            if measure or "{measure}" not in metric
        }
        cells += cells_of(done, columns, list(context.routers or LEARNED), measure)
    return cells


def _trained_on(context: StudyContext, mask: np.ndarray) -> Core:
    """The core with the train questions outside `mask` in no part."""
    core, scheme = context.core, context.default_scheme()
    split = core.splits[scheme].copy()
    split[(split == "train") & ~mask] = ""
    return replace(core, splits={**core.splits, scheme: split})


def before_and_after(context: StudyContext) -> Sequence[StudyCell]:
    """The same test questions; after: of each group of duplicates one train question."""
    first = np.zeros(context.core.n_queries, dtype=bool)
    first[np.unique(context.core.groups, return_index=True)[1]] = True
    return _side_by_side(context, _trained_on(context, first), "reduced")


def redundant_tasks(context: StudyContext) -> list[str]:
    """Tasks as close as `REDUNDANT` to one of a higher specialist score, as in recipes."""
    figure = specialist_sample(context.tables, redundant=REDUNDANT).figures["tasks"]
    return [row["task"] for row in figure if row["decision"] == "redundant_task"]


def without_redundant(context: StudyContext) -> Sequence[StudyCell]:
    """Trained without redundant tasks, tested on all (Figure 11)."""
    gone = redundant_tasks(context)
    number = StudyCell("tasks left out of training", "number", float(len(gone)), "count")
    mask = ~np.isin(context.core.tasks, gone)
    return [*_side_by_side(context, _trained_on(context, mask), "without"), number]


def pruned(context: StudyContext) -> Sequence[StudyCell]:
    """With all models, and with the share of them that the paper keeps (Figure 12)."""
    core = context.core
    target = max(2, round(KEPT * core.n_models))
    left = prune(dict(context.tables), trade_off=0.5, target=target)
    model_ids = set(left.kept["models"].column("model_id").to_pylist())
    names = tuple(name for name in core.model_ids if name in model_ids)
    cells = _side_by_side(context, core.with_models(names), "pruned")
    return [*cells, StudyCell("models kept", "number", float(len(names)), "count")]


def agreement(context: StudyContext) -> Sequence[StudyCell]:
    """Agreement with the best generalist without and with the pseudo-specialists.

    Over all test questions, and on the tasks that the specialists are for (Table 4).
    """
    models = context.tables["models"]
    real = models.filter(pc.equal(models.column("kind"), "real")).column("model_id").to_pylist()
    without = _evaluation(context, context.core.with_models(tuple(sorted(real))))
    target = [row["task"] for row in injected(context)]
    metric = "agreement_with_generalist"
    rows = {"Overall": metric} | {task: f"{metric}[{task}]" for task in target}
    cells = []
    for row, name in rows.items():
        before, after = (
            {r["router"]: r["value"] for r in done.metrics.to_pylist() if r["metric"] == name}
            for done in (without, _evaluation(context))
        )
        for router in context.routers or LEARNED:
            item, other = before.get(router), after.get(router)
            change = None if item is None or other is None else other - item
            cells += [
                StudyCell(row, f"{router}, without", item, "percent"),
                StudyCell(row, f"{router}, with", other, "percent"),
                StudyCell(row, f"{router}, change", change, "points"),
            ]
    return cells


def injected(context: StudyContext) -> list[dict[str, Any]]:
    """What each pseudo-specialist is for: its task, the task's share of questions, accuracies."""
    core = context.core
    kinds = context.tables["models"].select(["model_id", "kind"]).to_pylist()
    fake = [row["model_id"] for row in kinds if row["kind"] == "pseudo_specialist"]
    columns = [k for k, name in enumerate(core.model_ids) if name not in fake]
    results = []
    for name in fake:
        task = name.partition(":")[2]
        on = core.decided[core.tasks == task]
        means = np.nanmean(on[:, columns], axis=0)
        results.append(
            {
                "task": task,
                "share of questions": float((core.tasks == task).mean()),
                "mean accuracy": float(np.nanmean(means)),
                "best model": float(np.nanmax(means)),
                "pseudo model": float(np.nanmean(on[:, core.model_ids.index(name)])),
            }
        )
    return results


def specialist_tasks(context: StudyContext) -> Sequence[StudyCell]:
    """The tasks of the pseudo-specialists (Table 3), hardest first."""
    rows = sorted(injected(context), key=lambda row: row["mean accuracy"])
    return [
        cell
        for k, row in enumerate(rows, start=1)
        for cell in (
            StudyCell(f"task {k}", "task", text=row["task"]),
            *(
                StudyCell(f"task {k}", name, value, "percent")
                for name, value in row.items()
                if name != "task"
            ),
        )
    ]


def ood(context: StudyContext) -> Sequence[StudyCell]:
    """Change on each area and its tasks when routers are trained without the area."""
    rows: list[dict[str, Any]] = []
    for name in HELD_OUT:
        try:
            done = _evaluation(context, ood_groups={name: OOD_GROUPS[name]})
        except BadInput:  # the release has no question of the area, or no other
            continue
        rows += [] if done.ood is None else done.ood.to_pylist()
    if not rows:
        done = context.evaluation(LEARNED, ood=True)
        rows = [] if done.ood is None else done.ood.to_pylist()
    cells = [
        StudyCell(
            str(r["group"]).rpartition("/")[2], str(r["router"]), r["change"], "points", r["low"],
            r["high"],
        )
        for r in rows
        if not str(r["group"]).startswith("not ")
    ]  # fmt: skip
    named = [str(r["group"]) for r in rows if "/" in str(r["group"])]
    for router in dict.fromkeys(str(r["router"]) for r in rows) if named else ():
        own = [r["change"] for r in rows if str(r["group"]) in named and r["router"] == router]
        cells.append(StudyCell("mean of tasks", router, float(np.mean(own)), "points"))
    return cells


def dominance_places(context: StudyContext) -> Sequence[StudyCell]:
    """Mean rank by place: how far the first model is ahead, whatever it is called (Table 2)."""
    ranks = [cell for cell in dominance(context) if cell.column == "mean rank"]
    return [
        cell
        for k, rank in enumerate(ranks, start=1)
        for cell in (
            replace(rank, row=f"place {k}"),
            StudyCell(f"place {k}", "model", text=rank.row),
        )
    ]
