"""The routing plateau's analysis: hard and easy queries, exchange, kNN, selection, utility."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipelines.studies.context import StudyContext
from pipelines.studies.router_table import REFERENCE, Columns, measure_of, router_cells
from pipelines.studies.study import Study, StudyCell

PAPER = "routing-plateau"
NEEDS = ("labels", "splits", "embeddings")


def _oracle_gap(context: StudyContext) -> Sequence[StudyCell]:
    columns: Columns = {
        "gap_to_oracle_hard": ("gap, hard", "points"),
        "gap_to_oracle_easy": ("gap, easy", "points"),
        "hard_share_of_gap": ("share of gap on hard", "percent"),
    }
    return router_cells(context, columns, references=())


ORACLE_GAP = Study(
    name="oracle_gap",
    paper=PAPER,
    item="Table 3",
    title="Gap to the per-query oracle on hard and easy queries",
    cells=_oracle_gap,
    needs=NEEDS,
    rows="router",
    plot="bars",
    plot_column="gap, hard",
    notes=("Hard: one model is right, or few are and the best single model is not (section 5.1).",),
)


def _exchange(context: StudyContext) -> Sequence[StudyCell]:
    done = context.evaluation(REFERENCE)
    cells = []
    for row in done.exchanges.to_pylist():
        name = f"{row['first']} / {row['second']}"
        moved = row["disagreement"]
        cells += [
            StudyCell(name, "disagreement", moved, "percent"),
            StudyCell(name, "accuracy gap", abs(row["signed"]), "points"),
            StudyCell(
                name,
                "|ΔY| where they disagree",
                row["unsigned"] / moved if moved else None,
                note=None if moved else "the two never disagree",
            ),
            StudyCell(
                name, "|ΔY signed| where they disagree",
                abs(row["signed"]) / moved if moved else None, "number",
            ),
        ]  # fmt: skip
    return cells


EXCHANGE = Study(
    name="exchange",
    paper=PAPER,
    item="Table 4",
    title="What two routers exchange: disagreement, and wins and losses where they disagree",
    cells=_exchange,
    needs=NEEDS,
    rows="pair of routers",
    plot="bars",
    plot_column="disagreement",
    notes=("Pairs one by one; the paper prints range and medians over 66 pairs.",),
)


def _against_knn(context: StudyContext) -> Sequence[StudyCell]:
    columns: Columns = {"bce": ("BCE", "number"), "gap_to_oracle_hard": ("gap, hard", "points")}
    return router_cells(context, columns, references=())


AGAINST_KNN = Study(
    name="bce_against_knn",
    paper=PAPER,
    item="Table 5",
    title="BCE and gap on hard queries: kNN against trained routers",
    cells=_against_knn,
    needs=(*NEEDS, "router:knn"),
    rows="router",
    plot="bars",
    plot_column="BCE",
    notes=("BCE on test questions, where scores are probabilities; the paper's is on train.",),
)


def _shares(context: StudyContext, column: str) -> Sequence[StudyCell]:
    done = context.evaluation(REFERENCE)
    rows = [r for r in done.profiles.to_pylist() if r[column] is not None]
    shares = {(r["router"], r["model_id"]): r[column] for r in rows}
    routers = dict.fromkeys(router for router, _ in shares)
    models = sorted(
        {model for _, model in shares}, key=lambda m: (-shares.get(("oracle", m), 0.0), m)
    )
    return [StudyCell(r, m, shares.get((r, m), 0.0), "percent") for r in routers for m in models]


SELECTION = Study(
    name="selection_profiles",
    paper=PAPER,
    item="Figure 4, Figure 6, Figure 7, Figure 8, Figure 9",
    title="Share of test questions that each router sends to each model, beside the oracle's",
    cells=lambda context: _shares(context, "share"),
    needs=NEEDS,
    rows="router",
    plot="heat",
    notes=("All test questions; `selection_on_hard` has the hard ones alone.",),
)


SELECTION_ON_HARD = Study(
    name="selection_on_hard",
    paper=PAPER,
    item="Figure 4, Figure 6, Figure 7, Figure 8, Figure 9",
    title="Share of hard test questions that each router sends to each model",
    cells=lambda context: _shares(context, "hard_share"),
    needs=NEEDS,
    rows="router",
    plot="heat",
    notes=(
        "Hard: one model is right, or few are and the best single model is not (section 5.1). "
        "Routers that tell them apart would differ here from `selection_profiles`, as the oracle "
        "does.",
    ),
)


def _utility(context: StudyContext) -> Sequence[StudyCell]:
    measure = measure_of(context)
    columns: Columns = {
        f"utility[{measure},{weight:g}]": (f"λ = {weight:g}", "number")
        for weight in (0.0, 0.2, 0.5, 0.7, 0.9)
    }
    return router_cells(context, columns, references=())


COST_UTILITY = Study(
    name="cost_utility",
    paper=PAPER,
    item="Table 2, Table 9, Table 10, Table 11, Table 12",
    title="Realised utility (1 − λ)·Y − λ·c at several weights of cost",
    cells=_utility,
    needs=(*NEEDS, "cost"),
    rows="router",
    notes=("Costs are scaled over the train answers; one encoder and one fit per router.",),
)


def _plateau_curve(context: StudyContext) -> pa.Table:
    """Accuracy of every router in order, between the best single model and the oracle."""
    done = context.evaluation(REFERENCE)
    rows = [r for r in done.metrics.to_pylist() if r["metric"] == "accuracy"]
    known = {r["router"]: r["value"] for r in rows if r["value"] is not None}
    names = context.routers or REFERENCE
    order = sorted(known[name] for name in names if name in known)
    lines = {
        "routers": order,
        "oracle": [known["oracle"]] * len(order),
        "best single": [known["best single"]] * len(order),
    }
    return pa.Table.from_pylist(
        [
            {"series": name, "x": float(k + 1), "y": float(y), "low": None, "high": None}
            for name, ys in lines.items()
            for k, y in enumerate(np.asarray(ys).tolist())
        ],
        schema=pa.schema(
            [("series", pa.string()), *((n, pa.float64()) for n in ("x", "y", "low", "high"))]
        ),
    )


def _sorted(context: StudyContext) -> Sequence[StudyCell]:
    return router_cells(context, {"accuracy": ("accuracy", "percent")})


PLATEAU = Study(
    name="plateau",
    paper=PAPER,
    item="Figure 1",
    title="Routers in order of test accuracy, between the best single model and the oracle",
    cells=_sorted,
    needs=NEEDS,
    rows="router",
    plot="lines",
    curves=_plateau_curve,
    axes=("rank of the router", "test accuracy"),
)
