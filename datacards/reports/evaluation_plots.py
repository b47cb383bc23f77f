"""Plots of an evaluation as PNG and SVG files; the same tables give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from routeyard.datacards.charts.bars import shares
from routeyard.datacards.charts.draw import png
from routeyard.datacards.site.evaluation import selections
from routeyard.datacards.site.evaluation_charts import (
    MEASURES,
    over_call_rate,
    over_cost,
    over_groups,
)
from routeyard.datacards.site.evaluation_tables import EvaluationTables


def plot_all(
    folder: Path, one: EvaluationTables, models: Sequence[str], *, simulated: bool
) -> list[Path]:
    """Write every plot there is data for; returns the files.

    Args:
        models: All models of the release, for their colours.
        simulated: Nobody paid the costs.
    """
    pool = sorted(set(one.metrics.column("router").to_pylist()))
    drawn: dict[str, str] = {}
    points = [] if one.curves is None else one.curves.to_pylist()
    for measure in MEASURES:
        own = [p for p in points if p["curve"] == "deferral" and p["measure"] == measure]
        if own:
            costs = [p["x"] for p in own if p["x"] > 0]
            log = bool(costs) and max(costs) > 30 * min(costs)
            name = f"deferral-{measure}"
            drawn[f"deferral_{measure}"] = over_cost(
                own, "deferral", measure, name=name, log=log, simulated=simulated, pool=pool
            )
    if text := over_call_rate(points, one, name="tradeoff", pool=pool):
        drawn["tradeoff"] = text
    for part, rows in selections(one.profiles).items():
        name = "selection_hard" if part.endswith(" hard") else "selection"
        drawn[name] = shares(
            rows, name=name, title=f"Models each router asks ({part})", of="router", models=models
        )
    if one.ood is not None and one.ood.num_rows:
        drawn["ood"] = over_groups(one.ood.to_pylist(), pool, name="ood")
    return [path for name, text in drawn.items() for path in _save(folder, name, text)]


def _save(folder: Path, name: str, text: str) -> list[Path]:
    svg, pixels = folder / f"{name}.svg", folder / f"{name}.png"
    svg.write_text(text, encoding="utf-8")
    pixels.write_bytes(png(text))
    return [svg, pixels]
