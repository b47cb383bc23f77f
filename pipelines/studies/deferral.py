"""Deferral curves: area, quality-neutral cost, peak; routing outcomes; significance."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pipelines.studies.context import StudyContext
from pipelines.studies.router_table import REFERENCE, Columns, measure_of, router_cells
from pipelines.studies.study import Study, StudyCell

NEEDS = ("labels", "splits", "embeddings", "cost", "many_models")


def _deferral(context: StudyContext) -> Sequence[StudyCell]:
    name = measure_of(context)
    columns: Columns = {f"audc[{name}]": ("AUDC", "number"), f"qnc[{name}]": ("QNC", "number"),
               f"peak_accuracy[{name}]": ("peak accuracy", "percent")}  # fmt: skip
    return router_cells(context, columns, references=("oracle",))


def _curves(context: StudyContext) -> pa.Table:
    done, name = context.evaluation(REFERENCE), measure_of(context)
    kept = [
        {"series": r["router"], **{n: r[n] for n in ("x", "y", "low", "high")}}
        for r in done.curves.to_pylist()
        if r["curve"] == "deferral" and r["measure"] == name
    ]
    schema = pa.schema([("series", pa.string()), *((n, pa.float64()) for n in "xy"),
                        ("low", pa.float64()), ("high", pa.float64())])  # fmt: skip
    return pa.Table.from_pylist(kept, schema=schema)


DEFERRAL = Study(
    name="deferral",
    paper="cscr, who-routes-the-router",
    item="Table 1, Figure 1 (CSCR); Figure 7, Figure 12, Figure 14 (RouterBench+)",
    title="Deferral curves: area, quality-neutral cost and peak accuracy",
    cells=_deferral,
    needs=NEEDS,
    rows="router",
    plot="lines",
    curves=_curves,
    axes=("mean cost", "accuracy"),
)


def _outcomes(context: StudyContext) -> Sequence[StudyCell]:
    columns: Columns = {
        f"outcome[{name}]": (name.replace("_", " "), "percent")
        for name in ("optimal", "too_cheap", "too_expensive", "none_correct")
    }
    return router_cells(context, columns, references=("oracle",))


OUTCOMES = Study(
    name="routing_outcomes",
    paper="cscr",
    item="Table 15",
    title="What routing did: optimal, too cheap, too expensive, or nothing could be right",
    cells=_outcomes,
    needs=NEEDS,
    rows="router",
    plot="heat",
)


def _significance(context: StudyContext) -> Sequence[StudyCell]:
    done = context.evaluation(REFERENCE)
    wanted = f"audc[{measure_of(context)}]"
    cells = []
    for row in done.comparisons.to_pylist():
        if row["metric"] == wanted:
            name = f"{row['first']} − {row['second']}"
            cells += [
                StudyCell(name, "ΔAUDC", row["difference"], "number", row["low"], row["high"]),
                StudyCell(name, "p, Holm", row["p_adjusted"], "number"),
            ]
    return cells


SIGNIFICANCE = Study(
    name="significance",
    paper="cscr",
    item="Table 16",
    title="Paired differences of the area under the deferral curve",
    cells=_significance,
    needs=NEEDS,
    rows="pair of routers",
    plot="bars",
    plot_column="ΔAUDC",
)
