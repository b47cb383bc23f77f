"""Heatmaps: one cell per pair of a row and a column, all rows and columns named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from routeyard.datacards.charts.draw import LINK, PAPER, Look, draw
from routeyard.datacards.charts.vega import alone, field, mark, properties
from routeyard.datacards.charts.words import level, name_axis, room

#: Cells of a heatmap beyond which it is a table's work, not a picture's.
MOST_CELLS = 20_000


def heatmap(
    cells: Sequence[tuple[str, str, float | None]],
    *,
    name: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    value: str,
    of: tuple[str, str],
    domain: tuple[float, float] | None = None,
    share: bool = True,
    link: Callable[[str, str], str] | None = None,
    look: Look = PAPER,
) -> str:
    """SVG of (row, column, value) cells; a null value is left empty.

    Args:
        rows, columns: Names in the order in which they are shown.
        value: What a cell says, with its unit.
        of: Titles of the vertical and of the horizontal axis.
        domain: Values of the lightest and the darkest colour; by default those there are.
        share: Values are shares, shown in per cent; else they are shown as they are.
        link: (row, column) → where a cell leads on the questions page.
    """
    down = {label: k for k, label in enumerate(rows)}
    across = {label: k for k, label in enumerate(columns)}
    shown: list[Mapping[str, Any]] = [
        {"r": down[r], "c": across[c], "v": v, "says": _says(r, c, level(v, share), link)}
        for r, c, v in cells
        if r in down and c in across and v is not None
    ]
    values = [row["v"] for row in shown]
    low, high = domain or ((min(values), max(values)) if values else (0.0, 1.0))
    chart = alone(
        mark("rect").encode(
            x=field(
                "c:O",
                title=of[1],
                scale=properties(domain=list(range(len(columns)))),
                axis=name_axis(columns, labelAngle=-60, orient="top", domain=False,
                               minExtent=0.87 * room(columns)),
            ),
            y=field(
                "r:O",
                title=of[0],
                scale=properties(domain=list(range(len(rows)))),
                axis=name_axis(rows, domain=False),
            ),
            # One hue path from light to dark, told apart without colour vision too.
            color=field(
                "v:Q",
                title=value,
                scale=properties(scheme="cividis", domain=[low, high], clamp=True),
                legend=properties(orient="bottom", gradientLength=240,
                                  format="~p" if share else "~g"),
            ),
            description=field("says:N"),
        ),
        width=properties(step=17), height=properties(step=17),
    )  # fmt: skip
    return draw(chart, shown, name=name, title=title, look=look)


def agreement(
    jaccard: Sequence[Mapping[str, Any]],
    models: Sequence[Mapping[str, Any]],
    *,
    name: str,
    look: Look = PAPER,
) -> str | None:
    """Heatmap of every two models, ordered by clustering; None where there is nothing to read.

    Args:
        jaccard: model_a, model_b, similarity, from the health report.
        models: model_id, cluster_order.
    """
    order = {row["model_id"]: row["cluster_order"] or 0 for row in models}
    names = sorted({row["model_a"] for row in jaccard}, key=lambda name: order.get(name, 0))
    if not 0 < len(names) ** 2 <= MOST_CELLS:
        return None
    return heatmap(
        [(row["model_a"], row["model_b"], row["similarity"]) for row in jaccard],
        name=name,
        title="Agreement between every two models",
        rows=names,
        columns=names,
        value="questions both get right, of those either does",
        of=("model", "model"),
        look=look,
    )


def _says(row: str, column: str, told: str, link: Callable[[str, str], str] | None) -> str:
    words = f"{row} · {column}: {told}"
    return words if link is None else f"{words}{LINK}{link(row, column)}"
