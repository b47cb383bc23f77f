"""The routing plateau's analysis: exchanged wins, shares of models, the plateau itself."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.studies.router_table import REFERENCE
from routeyard.pipelines.studies.study import StudyCell
from routeyard.schemas.tables import RESULTS


def exchange(context: StudyContext) -> Sequence[StudyCell]:
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


def shares(context: StudyContext, column: str) -> Sequence[StudyCell]:
    done = context.evaluation(REFERENCE)
    rows = [r for r in done.profiles.to_pylist() if r[column] is not None]
    share = {(r["router"], r["model_id"]): r[column] for r in rows}
    routers = dict.fromkeys(router for router, _ in share)
    models = sorted(
        {model for _, model in share}, key=lambda m: (-share.get(("oracle", m), 0.0), m)
    )
    return [StudyCell(r, m, share.get((r, m), 0.0), "percent") for r in routers for m in models]


def plateau_curve(context: StudyContext) -> pa.Table:
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
    rows = [
        {"series": name, "x": float(k + 1), "y": float(y)}
        for name, ys in lines.items()
        for k, y in enumerate(ys)
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS["study_curves"])
