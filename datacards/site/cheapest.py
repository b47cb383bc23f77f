"""What each accuracy costs at least, by router and by single model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def cheapest(
    points: Sequence[Row], metrics: Sequence[Row], measure: str, unit: str, factor: float
) -> Row | None:
    """Per router the rising steps of its curve: what each accuracy costs at least.

    Single models are curves of one point: whoever asks for the cheapest way wants to know
    when no router is needed.
    """
    steps: dict[str, list[tuple[float, float]]] = {}
    for p in points:
        if p["curve"] == "deferral" and p["measure"] == measure and p["y"] is not None:
            steps.setdefault(p["router"], []).append((p["x"] * factor, p["y"]))
    if not steps:
        return None
    told: dict[str, Row] = {}
    for row in metrics:
        if row["router"].startswith("single:") and row["split"] == "test":
            told.setdefault(row["router"], {})[row["metric"]] = row["value"]
    for name, row in told.items():
        if row.get("accuracy") is not None and row.get(f"mean_cost[{measure}]") is not None:
            steps[name] = [(row[f"mean_cost[{measure}]"] * factor, row["accuracy"])]
    rising = {}
    for name, pairs in steps.items():
        best = -1.0
        kept = []
        for x, y in sorted(pairs, key=lambda pair: (pair[0], -pair[1])):
            if y > best:
                best = y
                kept.append((float(f"{x:.6g}"), float(f"{y:.6g}")))
        rising[name] = kept
    best_single = max(
        (pairs[-1][1] for name, pairs in rising.items() if name.startswith("single:")), default=None
    )
    return {
        "steps": rising,
        "unit": unit,
        # Downwards: the best single model must reach what is asked at first.
        "asked": None if best_single is None else math.floor(1000 * best_single) / 10,
    }
