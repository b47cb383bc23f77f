"""What each accuracy costs at least, by router and by single model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from routeyard.datacards.site.language import kind_of, router

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
    # Downwards: the best single model must reach what is asked at first.
    asked = None if best_single is None else math.floor(1000 * best_single) / 10
    return {"steps": rising, "unit": unit, "asked": asked, "told": _told(rising, asked, unit)}


def _told(
    rising: Mapping[str, Sequence[tuple[float, float]]], asked: float | None, unit: str
) -> str:
    """The cheapest router and single model at an accuracy, as `site.js` says it of any other; of
    equally cheap ones all."""
    least, words = (50.0 if asked is None else asked) / 100, []
    lowest = "Cheapest" if "USD" in unit else "Least by a"
    for kind, called in (("router", "router"), ("model", "single model")):
        own = {name: steps for name, steps in rising.items() if kind_of(name) == kind}
        costs = {n: x for n, steps in own.items() for x, y in steps[::-1] if y >= least - 1e-9}
        cost = min(costs.values(), default=None)
        who = "none reaches it"
        if cost is not None:
            names = [router(name) for name, x in costs.items() if x == cost]
            who = f"{' and '.join(names)} ({cost:,.4g} {unit})"
        words.append(f"{lowest} {called}: {who}.")
    return " ".join(words)
