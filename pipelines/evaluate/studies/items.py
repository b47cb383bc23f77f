"""Tables that studies share: routers as rows, metrics of one evaluation as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.matrix import first_measure
from routeyard.pipelines.curate.dedup import dedup
from routeyard.pipelines.curate.search import query_vectors
from routeyard.pipelines.curate.task_analysis import (
    average_ranks,
    model_costs,
    specialist_scores,
    task_similarity,
)
from routeyard.pipelines.evaluate.metrics import METRICS
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext, Unit
from routeyard.schemas.contracts import RESULTS

# Tables about data: counts per source, sizes of benchmarks, near-duplicates, close tasks.


def source_counts(context: StudyContext) -> Sequence[StudyCell]:
    counted = Counter(context.tables["queries"].column("source").to_pylist())
    cells = [StudyCell(name, "questions", float(n), "count") for name, n in counted.most_common()]
    return [*cells, StudyCell("total", "questions", float(sum(counted.values())), "count")]


def sizes(context: StudyContext) -> Sequence[StudyCell]:
    core, name = context.core, context.release
    cells = [
        StudyCell(name, "models", float(core.n_models), "count"),
        StudyCell(name, "questions", float(core.n_queries), "count"),
        StudyCell(name, "tasks", float(len(set(core.tasks.tolist()))), "count"),
        StudyCell(name, "labels known", core.coverage, "percent"),
    ]
    for scheme, split in core.splits.items():
        for part in ("train", "validation", "test"):
            count = float(np.sum(split == part))
            cells.append(StudyCell(name, f"{part} ({scheme})", count, "count"))
    return [*cells, StudyCell(name, "cost", text=", ".join(core.costs) or "none")]


def duplicates(context: StudyContext) -> Sequence[StudyCell]:
    table = context.tables.get("duplicates")
    if table is None or not table.num_rows:
        table = dedup(dict(context.tables), keep="all").added["duplicates"]
    groups: Counter[str] = Counter()
    conflicts = set()
    for row in table.to_pylist():
        groups[row["group_id"]] += 1
        if row["label_conflict"]:
            conflicts.add(row["group_id"])
    n, members = len(groups), sum(groups.values())
    total = context.tables["queries"].num_rows
    name = context.release
    return [
        StudyCell(name, "groups", float(n), "count"),
        StudyCell(name, "questions in groups", float(members), "count"),
        StudyCell(name, "share of questions", members / max(total, 1), "percent"),
        StudyCell(name, "mean size", members / n if n else None, note=None if n else "no groups"),
        StudyCell(name, "largest", float(max(groups.values(), default=0)), "count"),
        StudyCell(
            name, "groups with conflicting labels", len(conflicts) / n if n else None, "percent",
            note=None if n else "no groups",
        ),
    ]  # fmt: skip


def similarity_of_tasks(context: StudyContext) -> Sequence[StudyCell]:
    matrix = context.matrix
    vectors, _, _ = query_vectors(dict(context.tables), None, where="study task_similarity")
    close = task_similarity(vectors, matrix.task, len(matrix.tasks))
    return [
        StudyCell(task, other, float(close[a, b]))
        for a, task in enumerate(matrix.tasks)
        for b, other in enumerate(matrix.tasks)
    ]


# Tables about a pool: dominance of its models, specialist scores of the tasks (RouterBench+).


def dominance(context: StudyContext) -> Sequence[StudyCell]:
    """Mean rank of each model over tasks (section 4.3 and 4.5), and how many it wins."""
    ranks, won = average_ranks(context.matrix)
    bands = context.intervals(lambda matrix: average_ranks(matrix)[0])
    out = []
    for place in np.argsort(np.where(np.isnan(ranks), np.inf, ranks), kind="stable").tolist():
        name, (low, high) = context.matrix.models[place], bands[place]
        out.append(StudyCell(name, "mean rank", float(ranks[place]), "number", low, high))
        out.append(StudyCell(name, "tasks won", float(won[place]), "count"))
    return out


def specialists(context: StudyContext) -> Sequence[StudyCell]:
    """What another model gains over the best generalist on each task (section 4.5)."""
    cost = model_costs(context.tables)
    result = specialist_scores(context.matrix, cost)
    bands = context.intervals(lambda matrix: specialist_scores(matrix, cost).score)
    sizes = np.bincount(context.matrix.task, minlength=len(result.tasks))
    out = []
    order = np.argsort(np.where(np.isnan(result.score), np.inf, -result.score), kind="stable")
    for t in order.tolist():
        name, (low, high) = result.tasks[t], bands[t]
        out.append(StudyCell(name, "specialist score", float(result.score[t]), "points", low, high))
        out.append(StudyCell(name, "questions", float(sizes[t]), "count"))
    score = result.score[~np.isnan(result.score)]
    for heading, inside in (
        ("tasks below 0", score < 0),
        ("tasks from 0 to 0.05", (score >= 0) & (score < 0.05)),
        ("tasks from 0.05", score >= 0.05),
    ):
        out.append(StudyCell(heading, "number", float(inside.sum()), "count"))
    return out


#: Metric of `metrics.parquet` → (heading, unit).
Columns = Mapping[str, tuple[str, Unit]]

#: Routers that every release with embeddings can train, in the order tables show them.
REFERENCE = ("knn", "kmeans", "mf", "mlp", "best-generalist", "random")


def router_cells(
    context: StudyContext,
    columns: Columns,
    *,
    routers: Sequence[str] = REFERENCE,
    references: Sequence[str] = ("best single", "oracle"),
    ood: bool = False,
) -> list[StudyCell]:
    """Cells of a table of routers × metrics, with the evaluation's own intervals.

    Args:
        columns: Metric of `metrics.parquet` → (heading, unit).
        references: Rows below the routers, such as `oracle` and `best single`.
    """
    rest = not all(METRICS.get(name.partition("[")[0]).default for name in columns)
    done = context.evaluation(routers, ood=ood, all=rest)
    rows = [*(context.routers or routers), *references]
    return cells_of(done, columns, rows, measure_of(context))


def cells_of(
    done: Evaluation, columns: Columns, rows: Sequence[str], measure: str = ""
) -> list[StudyCell]:
    """The named metrics of the named routers; a metric that is null says why.

    Args:
        measure: the cost measure that `{measure}` in the name of a metric means.
    """
    result = {(row["router"], row["metric"]): row for row in done.metrics.to_pylist()}
    cells = []
    for name in rows:
        for metric, (heading, unit) in columns.items():
            row = result.get((name, metric.replace("{measure}", measure)))
            if row is None:
                cells.append(StudyCell(name, heading, None, unit, note="not measured"))
            else:
                value = (row["value"], unit, row["low"], row["high"])
                cells.append(StudyCell(name, heading, *value, note=row["reason"]))
    return cells


def measure_of(context: StudyContext) -> str:
    """The cost measure that comparisons use: usd, tokens, latency or params; else one that is known
    of some models, whose figures are those of the sub-pool."""
    core = context.core
    return first_measure(core.costs) or first_measure(core.part_costs) or ""


def lines_table(series: Iterable[tuple[str, Iterable[float], Iterable[float]]]) -> pa.Table:
    """A study's curves from (name, xs, ys) of each."""
    rows = [
        {"series": name, "x": float(x), "y": float(y)}
        for name, xs, ys in series
        for x, y in zip(xs, ys, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS["study_curves"])


def curve_table(done: Evaluation, curve: str, measure: str | None = None) -> pa.Table:
    """Curves of one kind of an evaluation, in the columns of `RESULTS["study_curves"]`."""
    rows = [
        {"series": row["router"], **row}
        for row in done.curves.to_pylist()
        if row["curve"] == curve and measure in (None, row["measure"])
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS["study_curves"])


def curves(context: StudyContext, curve: str, routers: Sequence[str] = REFERENCE) -> pa.Table:
    """Curves of the routers; deferral curves over the release's cost measure."""
    measure = measure_of(context) if curve == "deferral" else None
    return curve_table(context.evaluation(routers), curve, measure)


def area_differences(context: StudyContext) -> list[StudyCell]:
    """Paired differences of the area under the deferral curve, with corrected p-values."""
    cells = []
    for row in context.evaluation(REFERENCE).comparisons.to_pylist():
        if row["metric"] == f"audc[{measure_of(context)}]":
            name = f"{row['first']} − {row['second']}"
            cells += [
                StudyCell(name, "ΔAUDC", row["difference"], "number", row["low"], row["high"]),
                StudyCell(name, "p, Holm", row["p_adjusted"], "number"),
            ]
    return cells
