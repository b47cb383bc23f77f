"""Plots of a card: accuracy per model, and accuracy over cost where costs are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from routeyard.datacards.charts.models import accuracy_bars, cost_accuracy
from routeyard.schemas.stored import StoredTable, register


def plots(
    tables: Mapping[str, pa.Table | StoredTable], numbers: Mapping[str, Any]
) -> dict[str, bytes]:
    """`plots/accuracy.svg`, and `plots/cost.svg` when two models or more have a cost.

    Args:
        numbers: Of `card_numbers`.
    """
    costs = _mean_costs(tables)
    models: list[dict[str, Any]] = [
        {**row, "cost": 1000 * cost if (cost := costs.get(row["model_id"])) else None}
        for row in numbers["models"]
        if row["accuracy"] is not None
    ]
    if not models:
        return {}
    pool = [row["model_id"] for row in numbers["models"]]
    out = {"plots/accuracy.svg": accuracy_bars(models, pool=pool)}
    priced = [row for row in models if row["cost"] is not None]
    if len(priced) > 1:
        out["plots/cost.svg"] = cost_accuracy(
            priced, pool=pool, simulated=bool(numbers["simulated"])
        )
    return {path: text.encode() for path, text in out.items()}


def _mean_costs(tables: Mapping[str, pa.Table | StoredTable]) -> dict[str, float | None]:
    """USD per response of models whose every cost is known."""
    if "responses" not in tables:
        return {}
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        register(connection, "responses", tables["responses"])
        rows = connection.execute(
            "SELECT model_id, CASE WHEN count(cost_usd) = count(*) THEN avg(cost_usd) END "
            "FROM responses GROUP BY model_id"
        ).fetchall()
    return dict(rows)
