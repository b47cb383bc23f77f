"""Content of the routers page: rankings, curves, selection, pairs, zoo and studies."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from markupsafe import Markup

from datacards.charts.bars import shares
from datacards.charts.draw import PAGE
from datacards.charts.lines import curves
from datacards.site.book import Book, Measured

#: (metric, heading, filter of the template, what it says).
COLUMNS = (
    ("accuracy", "accuracy", "percent", "share of test questions answered right"),
    ("mean_cost[usd]", "cost", "per_thousand", "USD per 1,000 questions"),
    ("qnc[usd]", "QNC", "plain", "share of the best model's cost at which its accuracy is reached"),
    ("audc[usd]", "AUDC", "plain", "area under accuracy over cost, 1 is best"),
    ("gap_to_oracle", "to the oracle", "points", "percentage points below the per-query oracle"),
    ("gap_to_oracle_hard", "on hard", "points", "the same on hard questions only"),
    ("decision_time", "decision", "milliseconds", "ms to choose, per question"),
)
_CURVES = {
    "deferral": ("Accuracy over mean cost", "mean cost (USD per 1,000 questions{log})", "accuracy"),
    "budget": ("Accuracy within a budget", "budget (USD per 1,000 questions{log})", "accuracy"),
}


def content(book: Book) -> dict[str, Any]:
    """What `routers.html.jinja` shows."""
    models = [row["model_id"] for row in book.rows("SELECT model_id FROM models ORDER BY 1")]
    return {
        "columns": COLUMNS,
        "evaluations": [
            _evaluation(one, f"e{k}", models) for k, one in enumerate(book.evaluations)
        ],
        "references": (book.certificate or {}).get("routers") or [],
        "reason": (book.certificate or {}).get("routers_reason"),
        "beside": book.beside,
    }


def _evaluation(one: Measured, name: str, models: list[str]) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {}
    for row in one.metrics.to_pylist():
        if row["split"] == "test":
            rows.setdefault(row["router"], {"router": row["router"]})[row["metric"]] = row
    ranking = sorted(rows.values(), key=_by_accuracy)
    return {
        "title": one.title,
        "ranking": ranking,
        "charts": _charts(one, name),
        "selection": _selection(one.profiles, name, models),
        "pairs": _pairs(one.comparisons),
    }


def _by_accuracy(row: dict[str, Any]) -> tuple[float, str]:
    value = (row.get("accuracy") or {}).get("value")
    return (-value if value is not None else 1.0, row["router"])


def _charts(one: Measured, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    points = [] if one.curves is None else one.curves.to_pylist()
    for curve, (title, x, y) in _CURVES.items():
        own = [
            {**p, "x": 1000 * p["x"]}
            for p in points
            if p["curve"] == curve and p["measure"] == "usd"
        ]
        if not own:
            continue
        drawn = {
            log: Markup(  # noqa: S704  escaped by `draw`
                curves(
                    own,
                    name=f"{name}-{curve}-{'log' if log else 'linear'}",
                    title=title,
                    x=x.format(log=", log scale" if log else ""),
                    y=y,
                    log=log,
                    look=PAGE,
                )
            )
            for log in (True, False)
        }
        found.append({"title": title, "log": drawn[True], "linear": drawn[False]})
    return found


def _selection(profiles: pa.Table | None, name: str, models: list[str]) -> list[tuple[str, Markup]]:
    if profiles is None:
        return []
    found = []
    rows = profiles.to_pylist()
    for k, split in enumerate(dict.fromkeys(row["split"] for row in rows)):
        drawn = shares(
            [row for row in rows if row["split"] == split],
            name=f"{name}-selection-{k}",
            title=f"Models each router asks ({split})",
            of="router",
            models=models,
            look=PAGE,
        )
        found.append((split, Markup(drawn)))  # noqa: S704  escaped by `draw`
    return found


def _pairs(comparisons: pa.Table | None) -> list[dict[str, Any]]:
    if comparisons is None:
        return []
    rows = [row for row in comparisons.to_pylist() if row["metric"] == "accuracy"]
    return sorted(rows, key=lambda row: (not row["significant"], row["first"], row["second"]))
