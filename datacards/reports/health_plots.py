"""Plots of the health report, as SVG text; the same tables give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from routeyard.datacards.charts.bars import bars, histogram
from routeyard.datacards.charts.draw import PAPER, Look
from routeyard.datacards.charts.grids import MOST_CELLS, agreement, heatmap
from routeyard.datacards.markdown import texts

#: Bars beyond which only both ends are drawn: they tell the story.
MOST_BARS = 60
#: Bars: plot → table, its columns of names (`of`) and values, factor, title and axis.
_BARS: dict[str, dict[str, Any]] = texts("health_bars.yaml")


def plot_all(tables: Mapping[str, pa.Table], look: Look = PAPER) -> dict[str, str]:
    """Name → SVG of every plot there is data for."""
    rows = {name: table.to_pylist() for name, table in tables.items() if name in _READ}
    made: dict[str, str | None] = {}
    for name, about in _BARS.items():
        values = [
            {"name": row[about["of"]], "value": about["factor"] * row[about["column"]]}
            for row in rows.get(about["table"], ())
            if row[about["column"]] is not None
        ]
        made[name] = _bars(values, name, about, look)
    hard = [row["difficulty"] for row in rows["query_difficulty"] if row["difficulty"] is not None]
    if hard:
        made["difficulty"] = histogram(
            hard,
            name="difficulty",
            title="Difficulty of questions",
            x="share of models that are wrong",
            y="questions (count)",
            look=look,
        )
    made["task_similarity"] = _grid(
        [(r["task_a"], r["task_b"], r["similarity"]) for r in rows.get("task_similarity", ())],
        name="task_similarity",
        title="Similarity of every two tasks",
        value="cosine of mean embeddings",
        of=("task", "task"),
        share=False,
        look=look,
    )
    made["jaccard"] = agreement(
        rows.get("jaccard", ()), rows.get("models", ()), name="jaccard", look=look
    )
    made["coverage"] = _grid(
        [(r["model_id"], r["task"], r["labels"] / r["queries"]) for r in rows["coverage"]],
        name="coverage",
        title="Share of questions with a label, per model and task",
        value="share of questions with a label",
        of=("model", "task"),
        domain=(0.0, 1.0),
        look=look,
    )
    return {name: text for name, text in made.items() if text is not None}


_READ = frozenset({"query_difficulty", "task_similarity", "jaccard", "models", "coverage"}) | {
    about["table"] for about in _BARS.values()
}


def _grid(cells: Sequence[tuple[str, str, float | None]], **how: Any) -> str | None:
    """A heatmap, or None where it would be too large to read; the table is shown instead."""
    rows, columns = sorted({cell[0] for cell in cells}), sorted({cell[1] for cell in cells})
    if not 0 < len(rows) * len(columns) <= MOST_CELLS:
        return None
    return heatmap(cells, rows=rows, columns=columns, **how)


def _bars(
    values: Sequence[Mapping[str, Any]], name: str, about: Mapping[str, Any], look: Look
) -> str | None:
    if not values:
        return None
    of = about["of"]
    if len(values) > MOST_BARS:
        values = [*values[: MOST_BARS // 2], *values[-MOST_BARS // 2 :]]
        of = f"{of} (both ends of the list)"
    form = ".0f" if isinstance(values[0]["value"], int) else "+.1f"
    return bars(
        values, name=name, title=about["title"], of=of, value=about["axis"], form=form,
        dots=about.get("dots", False), look=look,
    )  # fmt: skip
