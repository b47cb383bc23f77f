"""Tables about routers: rows are routers, columns are metrics of one evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.matrix.core import first_measure
from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.studies.study import StudyCell, Unit
from routeyard.schemas.tables import RESULTS

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
    done = context.evaluation(routers, ood=ood)
    rows = [*(context.routers or routers), *references]
    return cells_of(done, columns, rows, measure_of(context))


def cells_of(
    done: Evaluation, columns: Columns, rows: Sequence[str], measure: str = ""
) -> list[StudyCell]:
    """The named metrics of the named routers; a metric that is null says why.

    Args:
        measure: the cost measure that `{measure}` in the name of a metric means.
    """
    found = {(row["router"], row["metric"]): row for row in done.metrics.to_pylist()}
    cells = []
    for name in rows:
        for metric, (heading, unit) in columns.items():
            row = found.get((name, metric.replace("{measure}", measure)))
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
