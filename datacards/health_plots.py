"""Plots of the health report, as SVG text; the same tables give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

#: Labels beyond which a heatmap's axes go without names.
MOST_LABELS = 60


def plot_all(tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """Name → SVG of every plot there is data for."""
    import matplotlib as mpl

    mpl.use("Agg")
    made: dict[str, str] = {}
    # Element ids come from the salt, not from a random number.
    with mpl.rc_context({"svg.hashsalt": "routeyard", "font.size": 9}):
        tasks = tables["tasks"]
        scored = tasks.filter(tasks.column("specialist_score").is_valid())
        if len(scored):
            made["specialist_scores"] = _bars(
                scored.column("task").to_pylist(),
                scored.column("specialist_score").to_pylist(),
                "specialist score (accuracy above the best generalist)",
            )
        hard = tables["query_difficulty"].column("difficulty").drop_null().to_pylist()
        if hard:
            made["difficulty"] = _histogram(hard, "share of models that are wrong", "questions")
        if "task_similarity" in tables:
            names, grid = _grid(tables["task_similarity"], "task_a", "task_b", _by_name)
            made["task_similarity"] = _heatmap(names, grid, "cosine of mean embeddings")
        if "jaccard" in tables:
            order = dict(
                zip(
                    *(
                        tables["models"].column(c).to_pylist()
                        for c in ("model_id", "cluster_order")
                    ),
                    strict=True,
                )
            )
            names, grid = _grid(tables["jaccard"], "model_a", "model_b", order.__getitem__)
            made["jaccard"] = _heatmap(names, grid, "Jaccard similarity of correct sets")
        if "duplicates_by_source" in tables and len(tables["duplicates_by_source"]):
            rows = tables["duplicates_by_source"]
            made["duplicates"] = _bars(
                rows.column("source").to_pylist(),
                rows.column("in_groups").to_pylist(),
                "questions in groups of near-duplicates",
            )
        made["coverage"] = _coverage(tables["coverage"])
    return made


def _by_name(name: str) -> str:
    return name


def _grid(table: pa.Table, a: str, b: str, key: Any) -> tuple[list[str], Any]:
    names = sorted(set(table.column(a).to_pylist()), key=key)
    place = {name: i for i, name in enumerate(names)}
    grid = np.full((len(names), len(names)), np.nan)
    values = table.column("similarity").to_numpy(zero_copy_only=False)
    rows = [place[name] for name in table.column(a).to_pylist()]
    columns = [place[name] for name in table.column(b).to_pylist()]
    grid[rows, columns] = values
    return names, grid


def _coverage(table: pa.Table) -> str:
    models = sorted(set(table.column("model_id").to_pylist()))
    tasks = sorted(set(table.column("task").to_pylist()))
    grid = np.full((len(models), len(tasks)), np.nan)
    row = {name: i for i, name in enumerate(models)}
    column = {name: i for i, name in enumerate(tasks)}
    for cell in table.to_pylist():
        grid[row[cell["model_id"]], column[cell["task"]]] = cell["labels"] / cell["queries"]
    return _heatmap(models, grid, "share of questions with a label", tasks, low=0.0)


def _bars(names: Sequence[str], values: Sequence[float], label: str) -> str:
    from matplotlib.figure import Figure

    shown = list(zip(names, values, strict=True))
    if len(shown) > MOST_LABELS:  # both ends tell the story
        half = MOST_LABELS // 2
        shown = [*shown[:half], *shown[-half:]]
    figure = Figure(figsize=(7.5, 0.8 + 0.2 * len(shown)), layout="constrained")
    axes = figure.subplots()
    axes.barh([_short(name) for name, _ in shown], [value for _, value in shown], color="#0072B2")
    axes.invert_yaxis()
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_xlabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    return _svg(figure)


def _histogram(values: Sequence[float], x: str, y: str) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.hist(values, bins=np.linspace(0, 1, 21).tolist(), color="#0072B2", edgecolor="white")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    return _svg(figure)


def _heatmap(
    rows: Sequence[str],
    grid: Any,
    label: str,
    columns: Sequence[str] | None = None,
    low: float | None = None,
) -> str:
    from matplotlib.figure import Figure

    across = list(columns if columns is not None else rows)
    named = max(len(rows), len(across)) <= MOST_LABELS
    height = 2.2 + 0.17 * min(len(rows), MOST_LABELS)
    figure = Figure(figsize=(8.2, height), layout="constrained")
    axes = figure.subplots()
    values = grid[~np.isnan(grid)]
    if low is None:
        low = float(values.min()) if len(values) else 0.0
    image = axes.imshow(grid, cmap="viridis", vmin=min(low, 0.999), vmax=1, aspect="auto")
    if named:
        axes.set_yticks(range(len(rows)), [_short(name) for name in rows], fontsize=7)
        axes.set_xticks(
            range(len(across)), [_short(name) for name in across], rotation=90, fontsize=7
        )
    else:
        axes.set_xticks([])
        axes.set_yticks([])
    figure.colorbar(image, ax=axes, label=label)
    return _svg(figure)


def _short(name: str) -> str:
    # A dollar sign would be read as mathematics.
    plain = name.replace("$", r"\$")
    return plain if len(plain) <= 34 else plain[:31] + "…"


def _svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
