"""Routing between a small and a large model: call rates, scenario metrics, trade-off curves."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pipelines.studies.context import StudyContext
from pipelines.studies.router_table import REFERENCE, Columns, router_cells
from pipelines.studies.study import Study, StudyCell

NEEDS = ("labels", "splits", "embeddings", "pair")
ROUTERS = tuple(name for name in REFERENCE if name != "best-generalist")


def _call_rates(context: StudyContext) -> Sequence[StudyCell]:
    columns: Columns = {"cpt[50]": ("CPT(50)", "percent"), "cpt[80]": ("CPT(80)", "percent"),
               "apgr": ("APGR", "number")}  # fmt: skip
    return router_cells(context, columns, routers=ROUTERS, references=("oracle",))


CALL_RATES = Study(
    name="call_rates",
    paper="confidence-router",
    item="Table 1, Figure 2",
    title="Least call rate of the large model for half and four fifths of its gain",
    cells=_call_rates,
    needs=NEEDS,
    rows="router",
    plot="bars",
    plot_column="CPT(50)",
    notes=("The paper's random router needs about the share it recovers: 51 and 79 on MT-Bench.",),
)


def _scenarios(context: StudyContext) -> Sequence[StudyCell]:
    columns: Columns = {"auroc": ("AUROC", "percent"), "lpm": ("LPM", "percent"),
               "mpm": ("MPM", "percent"), "hcr": ("HCR", "percent")}  # fmt: skip
    return router_cells(context, columns, routers=ROUTERS, references=("oracle",))


SCENARIOS = Study(
    name="scenarios",
    paper="triple-perspective",
    item="Table 1, Table 2",
    title="Router ability (AUROC) and alignment with three scenarios (LPM, MPM, HCR)",
    cells=_scenarios,
    needs=NEEDS,
    rows="router",
    plot="bars",
    plot_column="AUROC",
    notes=("Bands as in section 5.2: call rates to 25 and 30 %, 85 to 95 % of the gain.",),
)


def _curves(context: StudyContext) -> pa.Table:
    done = context.evaluation(ROUTERS)
    rows = [r for r in done.curves.to_pylist() if r["curve"] == "tradeoff"]
    schema = pa.schema(
        [("series", pa.string()), *((name, pa.float64()) for name in ("x", "y", "low", "high"))]
    )
    kept = [{"series": r["router"], **{n: r[n] for n in ("x", "y", "low", "high")}} for r in rows]
    return pa.Table.from_pylist(kept, schema=schema)


def _tradeoff(context: StudyContext) -> Sequence[StudyCell]:
    columns: Columns = {"apgr": ("APGR", "number")}
    return router_cells(context, columns, routers=ROUTERS, references=("oracle",))


BINARY_TRADEOFF = Study(
    name="binary_tradeoff",
    paper="who-routes-the-router",
    item="Figure 3, Figure 8, Figure 13",
    title="Accuracy against the share of questions sent to the large model",
    cells=_tradeoff,
    needs=NEEDS,
    rows="router",
    plot="lines",
    curves=_curves,
    axes=("share sent to the large model", "accuracy"),
)
