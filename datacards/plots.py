"""Plots of a card as small SVG files: text, so equal data give equal bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import pyarrow as pa

from datacards.numbers import card_numbers
from schemas.stored import Stored, register

_INK, _BAR, _GRID = "#1f2933", "#2f6f9f", "#d9dee3"
_FONT = "font-family='Helvetica,Arial,sans-serif' font-size='12'"
_SHOWN = 40


def plots(tables: Mapping[str, pa.Table | Stored]) -> dict[str, bytes]:
    """`plots/accuracy.svg`, and `plots/cost.svg` when costs are known."""
    numbers = card_numbers(tables)
    models = [model for model in numbers["models"] if model["accuracy"] is not None]
    if not models:
        return {}
    out = {"plots/accuracy.svg": accuracy_bars(models, numbers["oracle"])}
    priced = _mean_costs(tables)
    points = [
        (str(model["model_id"]), cost, float(model["accuracy"]))
        for model in models
        if (cost := priced.get(model["model_id"]))
    ]
    if len(points) > 1:
        out["plots/cost.svg"] = cost_scatter(points)
    return {path: text.encode() for path, text in out.items()}


def accuracy_bars(models: list[dict[str, Any]], oracle: Mapping[str, Any] | None) -> str:
    """Horizontal bars of accuracy, best first, with the oracle as a line."""
    shown = models[:_SHOWN]
    left, width, row = 260, 420, 20
    height = row * len(shown) + 50
    parts = []
    for i, model in enumerate(shown):
        y, share = 30 + i * row, float(model["accuracy"])
        parts.append(_text(left - 8, y + 13, model["model_id"], anchor="end"))
        parts.append(
            f"<rect x='{left}' y='{y}' width='{width * share:.1f}' height='14' fill='{_BAR}'/>"
        )
        parts.append(_text(left + width * share + 6, y + 12, f"{100 * share:.1f} %"))
    if oracle and oracle["oracle"] is not None:
        x = left + width * float(oracle["oracle"])
        parts.append(
            f"<line x1='{x:.1f}' y1='24' x2='{x:.1f}' y2='{height - 16}' stroke='{_INK}' "
            "stroke-dasharray='4 3'/>"
        )
        parts.append(_text(x, 18, "per-query oracle", anchor="middle"))
    return _svg(left + width + 90, height, "Accuracy per model", parts)


def cost_scatter(points: Iterable[tuple[str, float, float]]) -> str:
    """Accuracy over mean cost per response, cost on a logarithmic axis."""
    from math import log10

    points = list(points)
    logs = [log10(cost) for _, cost, _ in points]
    low, high = min(logs), max(logs)
    span = (high - low) or 1.0
    left, top, width, height = 60, 30, 560, 300
    parts = []
    for tick in range(0, 101, 20):
        y = top + height * (1 - tick / 100)
        parts.append(
            f"<line x1='{left}' y1='{y:.1f}' x2='{left + width}' y2='{y:.1f}' stroke='{_GRID}'/>"
        )
        parts.append(_text(left - 6, y + 4, f"{tick} %", anchor="end"))
    for (name, _cost, accuracy), place in zip(points, logs, strict=True):
        x = left + 20 + (width - 140) * (place - low) / span
        y = top + height * (1 - accuracy)
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{_BAR}'/>")
        parts.append(_text(x + 7, y + 4, name))
    for place, anchor in ((low, "start"), (high, "end")):
        x = left + 20 + (width - 140) * (place - low) / span
        parts.append(_text(x, top + height + 18, f"${10**place:.2g}", anchor=anchor))
    title = "Accuracy over mean cost of a response (USD, logarithmic)"
    return _svg(left + width + 60, top + height + 36, title, parts)


def _mean_costs(tables: Mapping[str, pa.Table | Stored]) -> dict[str, float | None]:
    """Mean cost per response of models whose every cost is known."""
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


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    shown = text if len(text) <= 40 else text[:39] + "…"
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' fill='{_INK}' {_FONT}>"
        f"{escape(shown)}</text>"
    )


def _svg(width: float, height: float, title: str, parts: list[str]) -> str:
    body = "\n".join(parts)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' "
        f"role='img'>\n<title>{escape(title)}</title>\n"
        f"<rect width='100%' height='100%' fill='white'/>\n{body}\n</svg>\n"
    )
