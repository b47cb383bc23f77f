"""Plots of the health report, as SVG text; the same tables give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from datacards.charts.bars import bars, histogram
from datacards.charts.draw import PAPER, Look
from datacards.charts.grids import MOST_CELLS, heatmap

#: Bars beyond which only both ends are drawn: they tell the story.
MOST_BARS = 60


def plot_all(tables: Mapping[str, pa.Table], look: Look = PAPER) -> dict[str, str]:
    """Name → SVG of every plot there is data for."""
    made: dict[str, str | None] = {}
    scored = [
        {"name": row["task"], "value": 100 * row["specialist_score"]}
        for row in tables["tasks"].to_pylist()
        if row["specialist_score"] is not None
    ]
    made["specialist_scores"] = _bars(
        scored,
        "specialist_scores",
        "Specialist score of every task",
        "task",
        "specialist score (percentage points above the generalist)",
        look,
    )
    hard = tables["query_difficulty"].column("difficulty").drop_null().to_pylist()
    if hard:
        made["difficulty"] = histogram(
            hard,
            name="difficulty",
            title="Difficulty of questions",
            x="share of models that are wrong",
            y="questions (count)",
            look=look,
        )
    if "task_similarity" in tables:
        rows = tables["task_similarity"].to_pylist()
        names = sorted({row["task_a"] for row in rows})
        cells = [(row["task_a"], row["task_b"], row["similarity"]) for row in rows]
        made["task_similarity"] = _grid(
            cells, "task_similarity", "Likeness of every two tasks", names, names,
            "cosine of mean embeddings", ("task", "task"), look, share=False,
        )  # fmt: skip
    if "jaccard" in tables:
        order = {row["model_id"]: row["cluster_order"] for row in tables["models"].to_pylist()}
        rows = tables["jaccard"].to_pylist()
        names = sorted({row["model_a"] for row in rows}, key=order.__getitem__)
        cells = [(row["model_a"], row["model_b"], row["similarity"]) for row in rows]
        made["jaccard"] = _grid(
            cells, "jaccard", "Likeness of every two models", names, names,
            "questions both get right, of those either does", ("model", "model"), look,
        )  # fmt: skip
    if "duplicates_by_source" in tables:
        found = tables["duplicates_by_source"].to_pylist()
        made["duplicates"] = _bars(
            [{"name": row["source"], "value": row["in_groups"]} for row in found],
            "duplicates",
            "Near-duplicates by source",
            "source",
            "questions in groups of near-duplicates (count)",
            look,
        )
    made["coverage"] = _coverage(tables["coverage"], look)
    return {name: text for name, text in made.items() if text is not None}


def _coverage(table: pa.Table, look: Look) -> str | None:
    rows = table.to_pylist()
    return _grid(
        [(row["model_id"], row["task"], row["labels"] / row["queries"]) for row in rows],
        "coverage",
        "Share of questions with a label, per model and task",
        sorted({row["model_id"] for row in rows}),
        sorted({row["task"] for row in rows}),
        "share of questions with a label",
        ("model", "task"),
        look,
        domain=(0.0, 1.0),
    )


def _grid(
    cells: Sequence[tuple[str, str, float | None]],
    name: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    value: str,
    of: tuple[str, str],
    look: Look,
    **how: Any,
) -> str | None:
    """A heatmap, or None where it would be too large to read; the table stands beside it."""
    if not rows or len(rows) * len(columns) > MOST_CELLS:
        return None
    return heatmap(
        cells, name=name, title=title, rows=rows, columns=columns, value=value, of=of, look=look,
        **how,
    )  # fmt: skip


def _bars(
    values: Sequence[Mapping[str, Any]], name: str, title: str, of: str, value: str, look: Look
) -> str | None:
    if not values:
        return None
    if len(values) > MOST_BARS:
        values = [*values[: MOST_BARS // 2], *values[-MOST_BARS // 2 :]]
        of = f"{of} (both ends of the list)"
    form = ".0f" if isinstance(values[0]["value"], int) else "+.1f"
    return bars(values, name=name, title=title, of=of, value=value, form=form, look=look)
