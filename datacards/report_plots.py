"""Plots of an evaluation as PNG and SVG; the same tables give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

#: Distinguishable also without colour vision (Okabe and Ito), darkest last.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8B6914", "#6A3D9A",
    "#444444", "#999999",
)  # fmt: skip

#: What routers are compared with is dashed and without hue.
REFERENCES = {"oracle": "#111111", "task oracle": "#666666", "random mix": "#a0a0a0"}


def plot_all(
    folder: Path,
    curves: pa.Table,
    profiles: pa.Table,
    ood: pa.Table | None,
    facts: dict[str, Any],
    levels: tuple[float, float] | None = None,
) -> list[Path]:
    """Write every plot there is data for; returns the files.

    Args:
        levels: accuracies of the small and the large model, for the band of
            the trade-off plot.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    written: list[Path] = []
    # Element ids in SVG come from the salt, not from a random number.
    with mpl.rc_context({"svg.hashsalt": "routeyard", "font.size": 9, "figure.dpi": 120}):
        for measure in facts.get("measures", []):
            rows = _rows(curves, curve="deferral", measure=measure)
            written += _save(
                _curves(rows, f"mean cost [{measure}]", "accuracy"), folder, f"deferral_{measure}"
            )
        trade = _rows(curves, curve="tradeoff")
        if trade:
            written += _save(_tradeoff(trade, levels), folder, "tradeoff")
        if profiles.num_rows:
            written += _save(_profiles(profiles.to_pylist()), folder, "selection")
        if ood is not None and ood.num_rows:
            written += _save(_ood(ood.to_pylist()), folder, "ood")
    return written


def _rows(curves: pa.Table, **wanted: str) -> list[dict[str, Any]]:
    return [
        row for row in curves.to_pylist() if all(row[key] == value for key, value in wanted.items())
    ]


def _save(figure: Any, folder: Path, name: str) -> list[Path]:
    import matplotlib.pyplot as plt

    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    figure.savefig(png, metadata={"Software": None})
    figure.savefig(svg, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return [png, svg]


def _routers(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["router"] for row in rows))


def _axes(width: float = 7.0, height: float = 4.2) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _draw(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    for k, name in enumerate(_routers(rows)):
        mine = [row for row in rows if row["router"] == name]
        x, y = [row["x"] for row in mine], [row["y"] for row in mine]
        dashed = name in REFERENCES
        colour = REFERENCES.get(name, COLOURS[k % len(COLOURS)])
        axes.plot(
            x,
            y,
            label=name,
            color=colour,
            lw=1.4,
            ls="--" if dashed else "-",
            marker="." if len(set(x)) < 3 else None,
        )
        if not dashed and all(row["low"] is not None for row in mine):
            axes.fill_between(
                x,
                [row["low"] for row in mine],
                [row["high"] for row in mine],
                color=colour,
                alpha=0.07,
                lw=0,
            )
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _curves(rows: Sequence[dict[str, Any]], x: str, y: str) -> Any:
    figure, axes = _axes()
    _draw(axes, rows)
    axes.set(xlabel=x, ylabel=y)
    costs = [row["x"] for row in rows if row["x"] > 0]
    if costs and max(costs) > 30 * min(costs):
        axes.set_xscale("log")
    return figure


def _tradeoff(rows: Sequence[dict[str, Any]], levels: tuple[float, float] | None) -> Any:
    figure, axes = _axes()
    axes.axvspan(0, 0.25, color="#0072B2", alpha=0.07, lw=0)
    axes.axvspan(0.30, 0.85, color="#009E73", alpha=0.07, lw=0)
    axes.text(0.005, 0.985, "LPM", transform=axes.transAxes, va="top", fontsize=7)
    axes.text(
        0.305, 0.985, "MPM (to d₂)", transform=axes.get_xaxis_transform(), va="top", fontsize=7
    )
    if levels is not None and levels[1] > levels[0]:
        small, large = levels
        gap = large - small
        axes.axhspan(small + 0.85 * gap, small + 0.95 * gap, color="#E69F00", alpha=0.18, lw=0)
        axes.text(0.99, small + 0.9 * gap, "HCR", va="center", ha="right", fontsize=7)
        axes.plot([0, 1], levels, color="#999999", lw=1, ls=":")
    _draw(axes, rows)
    axes.set(xlabel="call rate of the large model", ylabel="accuracy", xlim=(0, 1))
    return figure


def _profiles(rows: Sequence[dict[str, Any]]) -> Any:
    names = _routers(rows)
    shares: dict[str, float] = {}
    for row in rows:
        shares[row["model_id"]] = max(shares.get(row["model_id"], 0.0), row["share"])
    shown = sorted(shares, key=lambda model: (-shares[model], model))[:9]
    figure, axes = _axes(height=0.35 * len(names) + 1.6)
    for at, name in enumerate(names):
        mine = {row["model_id"]: row["share"] for row in rows if row["router"] == name}
        left = 0.0
        for k, model in enumerate([*shown, "others"]):
            share = 1 - left if model == "others" else mine.get(model, 0.0)
            axes.barh(
                at, max(share, 0.0), left=left, color=COLOURS[k], label=model if at == 0 else None
            )
            left += share
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlabel="share of questions", xlim=(0, 1))
    axes.legend(frameon=False, fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return figure


def _ood(rows: Sequence[dict[str, Any]]) -> Any:
    names = _routers(rows)
    groups = list(dict.fromkeys(row["group"] for row in rows))
    figure, axes = _axes(width=max(7.0, 0.9 * len(groups)))
    for k, name in enumerate(names):
        mine = {row["group"]: row for row in rows if row["router"] == name}
        x = [
            g + (k - len(names) / 2) * 0.8 / len(names)
            for g, group in enumerate(groups)
            if group in mine
        ]
        found = [mine[group] for group in groups if group in mine]
        y = [row["change"] for row in found]
        low = [max(row["change"] - row["low"], 0.0) for row in found]
        high = [max(row["high"] - row["change"], 0.0) for row in found]
        axes.bar(
            x,
            y,
            width=0.8 / len(names),
            color=COLOURS[k % len(COLOURS)],
            label=name,
            yerr=[low, high],
            error_kw={"lw": 0.7},
        )
    axes.axhline(0, color="#444444", lw=0.8)
    axes.set_xticks(range(len(groups)), groups, rotation=30, ha="right")
    axes.set(ylabel="accuracy change, group not seen in training")
    axes.legend(frameon=False, fontsize=7, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure
