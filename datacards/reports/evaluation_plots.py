"""Plots of an evaluation as PNG and SVG files; the same tables give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from datacards.charts.bars import changes, shares
from datacards.charts.draw import png
from datacards.charts.lines import curves
from datacards.site.evaluation import MEASURES, EvaluationTables, bands, selections


def plot_all(folder: Path, one: EvaluationTables, models: Sequence[str]) -> list[Path]:
    """Write every plot there is data for; returns the files.

    Args:
        models: All models of the release, for their colours.
    """
    pool = sorted(set(one.metrics.column("router").to_pylist()))
    drawn: dict[str, str] = {}
    points = [] if one.curves is None else one.curves.to_pylist()
    for measure, (unit, factor) in MEASURES.items():
        own = [
            {**p, "x": factor * p["x"]}
            for p in points
            if p["curve"] == "deferral" and p["measure"] == measure
        ]
        if own:
            costs = [p["x"] for p in own if p["x"] > 0]
            log = bool(costs) and max(costs) > 30 * min(costs)
            drawn[f"deferral_{measure}"] = curves(
                own,
                name=f"deferral-{measure}",
                title=f"Accuracy over mean cost, {unit}",
                x=f"mean cost ({unit}{', log scale' if log else ''})",
                y="accuracy",
                log=log,
                pool=pool,
            )
    trade = [p for p in points if p["curve"] == "tradeoff"]
    if trade:
        zones, straight = bands(one)
        drawn["tradeoff"] = curves(
            trade,
            name="tradeoff",
            title="Accuracy over the call rate of the large model",
            x="questions sent to the large model (share)",
            y="accuracy",
            shares=(True, True),
            zones=zones,
            straight=straight,
            pool=pool,
        )
    for part, rows in selections(one.profiles).items():
        name = "selection_hard" if part.endswith(" hard") else "selection"
        drawn[name] = shares(
            rows, name=name, title=f"Models each router asks ({part})", of="router", models=models
        )
    if one.ood is not None and one.ood.num_rows:
        drawn["ood"] = changes(
            one.ood.to_pylist(),
            name="ood",
            title="Change of accuracy on a group not seen in training",
            of="group held out",
            value="change of accuracy (percentage points)",
            routers=pool,
        )
    return [path for name, text in drawn.items() for path in _save(folder, name, text)]


def _save(folder: Path, name: str, text: str) -> list[Path]:
    svg, pixels = folder / f"{name}.svg", folder / f"{name}.png"
    svg.write_text(text, encoding="utf-8")
    pixels.write_bytes(png(text))
    return [svg, pixels]
