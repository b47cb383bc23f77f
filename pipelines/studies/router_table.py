"""Tables about routers: rows are routers, columns are metrics of one evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipelines.evaluate.run import Evaluation
from pipelines.studies.context import StudyContext
from pipelines.studies.study import StudyCell, Unit

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
    return cells_of(done, columns, [*(context.routers or routers), *references])


def cells_of(done: Evaluation, columns: Columns, rows: Sequence[str]) -> list[StudyCell]:
    """The named metrics of the named routers; a metric that is null says why."""
    found = {(row["router"], row["metric"]): row for row in done.metrics.to_pylist()}
    cells = []
    for name in rows:
        for metric, (heading, unit) in columns.items():
            row = found.get((name, metric))
            if row is None:
                cells.append(StudyCell(name, heading, None, unit, note="not measured"))
            else:
                cells.append(
                    StudyCell(name, heading, row["value"], unit, row["low"], row["high"],
                         note=row["reason"])
                )  # fmt: skip
    return cells


def measure_of(context: StudyContext) -> str:
    """The cost measure that comparisons use: usd, tokens, latency or params."""
    known = [name for name in ("usd", "tokens", "latency", "params") if name in context.core.costs]
    return known[0] if known else ""
