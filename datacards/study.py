"""A study as Markdown and as one HTML page: the cells, the paper's values beside them, a plot."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import pyarrow as pa

from datacards.card import cell as markdown_cell

#: Unit → (factor on the stored value, digits, sign of the unit in the heading).
UNITS: Mapping[str, tuple[float, int, str]] = {
    "percent": (100.0, 2, " (%)"),
    "points": (100.0, 2, " (pp)"),
    "count": (1.0, 0, ""),
    "number": (1.0, 3, ""),
}

Row = Mapping[str, Any]


def markdown(about: Row, cells: pa.Table) -> str:
    """The study as Markdown.

    Args:
        about: name, paper, item, title, rows, notes, release, version.
        cells: The study's cells (`pipelines.studies.study.CELLS`).
    """
    head, body = grid(about, cells)
    lines = [
        f"## {about['title']}",
        "",
        f"{about['paper']}, {about['item']}. Release `{about['release']}` {about['version']}; "
        f"made by `routeyard study {about['name']}`.",
        "",
        "| " + " | ".join(markdown_cell(text) for text in head) + " |",
        "| --- |" + " ---: |" * (len(head) - 1),
    ]
    lines += ["| " + " | ".join(markdown_cell(text) for text in row) + " |" for row in body]
    lines += ["", *(f"- {note}" for note in [*about["notes"], *_remarks(cells)])]
    return "\n".join(lines).rstrip() + "\n"


def page(about: Row, cells: pa.Table, figure: bytes | None) -> str:
    """One HTML page that asks nothing of any server; the figure stands in it as SVG."""
    from jinja2 import Environment

    head, body = grid(about, cells)
    template = files("datacards").joinpath("templates", "study.html.jinja")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        about=about,
        head=head,
        body=body,
        notes=[*about["notes"], *_remarks(cells)],
        figure=None if figure is None else base64.b64encode(figure).decode("ascii"),
    )


def grid(about: Row, cells: pa.Table) -> tuple[list[str], list[list[str]]]:
    """Headings and rows as texts, rows and columns in order of appearance."""
    found = {(row["row"], row["column"]): row for row in cells.to_pylist()}
    rows = list(dict.fromkeys(row for row, _ in found))
    columns = list(dict.fromkeys(column for _, column in found))
    units = {column: _unit_of(found, column) for column in columns}
    printed = {c for (_, c), cell in found.items() if cell["printed"] is not None}
    head = [str(about["rows"])]
    for column in columns:
        head.append(column + UNITS[units[column]][2])
        if column in printed:
            head.append(f"{column}, as printed")
    body = []
    for row in rows:
        line = [row]
        for column in columns:
            cell = found.get((row, column))
            line.append(shown(cell) if cell else "")
            if column in printed:
                value = cell["printed"] if cell else None
                line.append("" if value is None else _number(value, cell))
        body.append(line)
    return head, body


def shown(cell: Row) -> str:
    """One cell as a text: value with its interval, `–` where it is not known."""
    if cell["text"] is not None:
        return str(cell["text"])
    if cell["value"] is None:
        return "–"
    text = _number(cell["value"], cell)
    if cell["low"] is not None and cell["high"] is not None:
        text += f" [{_number(cell['low'], cell)}, {_number(cell['high'], cell)}]"
    return text


def plot(about: Row, cells: pa.Table, curves: pa.Table | None) -> bytes | None:
    """The study's figure as SVG; the same cells give the same bytes. None without one."""
    import io

    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context({"svg.hashsalt": "routeyard", "font.size": 9}):
        figure = _figure(plt, about, cells.to_pylist(), curves)
        if figure is None:
            return None
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
        return stream.getvalue()


def _figure(plt: Any, about: Row, rows: Sequence[Row], curves: pa.Table | None) -> Any:
    if about["plot"] == "bars":
        return _bars(plt, about, rows)
    if about["plot"] == "heat":
        return _heat(plt, rows)
    if about["plot"] == "lines" and curves is not None and curves.num_rows:
        return _lines(plt, about, curves.to_pylist())
    return None


def _bars(plt: Any, about: Row, rows: Sequence[Row]) -> Any:
    used = [r for r in rows if r["column"] == about["plot_column"] and r["value"] is not None]
    if not used:
        return None
    factor, _, unit = UNITS[used[0]["unit"]]
    figure, axes = plt.subplots(figsize=(7, 0.22 * len(used) + 1.2), layout="constrained")
    values = [factor * r["value"] for r in used]
    places = list(range(len(used)))[::-1]
    axes.barh(places, values, color="#0072B2")
    for place, row in zip(places, used, strict=True):
        if row["low"] is not None and row["high"] is not None:
            axes.plot([factor * row["low"], factor * row["high"]], [place, place], color="#111")
        if row["printed"] is not None:
            at = factor * row["printed"]
            axes.plot([at], [place], marker="D", color="#D55E00", markersize=4)
    axes.set_yticks(places, [r["row"] for r in used])
    axes.set_xlabel(f"{about['plot_column']}{unit}")
    if any(r["printed"] is not None for r in used):
        axes.set_title("diamonds: as printed in the paper", fontsize=8)
    return figure


def _heat(plt: Any, rows: Sequence[Row]) -> Any:
    known = [r for r in rows if r["value"] is not None]
    names = list(dict.fromkeys(r["row"] for r in known))
    columns = list(dict.fromkeys(r["column"] for r in known))
    if not names:
        return None
    values = [[float("nan")] * len(columns) for _ in names]
    for r in known:
        values[names.index(r["row"])][columns.index(r["column"])] = r["value"]
    size = (0.25 * len(columns) + 3, 0.22 * len(names) + 1.5)
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    figure.colorbar(axes.imshow(values, aspect="auto", cmap="viridis"))
    axes.set_xticks(range(len(columns)), columns, rotation=90)
    axes.set_yticks(range(len(names)), names)
    return figure


def _lines(plt: Any, about: Row, rows: Sequence[Row]) -> Any:
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name in dict.fromkeys(r["series"] for r in rows):
        points = [r for r in rows if r["series"] == name]
        x = [r["x"] for r in points]
        line = axes.plot(x, [r["y"] for r in points], label=name)[0]
        if all(r["low"] is not None for r in points):
            low, high = [r["low"] for r in points], [r["high"] for r in points]
            axes.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set_xlabel(about["axes"][0])
    axes.set_ylabel(about["axes"][1])
    axes.legend(fontsize=7)
    return figure


def _unit_of(found: Mapping[tuple[str, str], Row], column: str) -> str:
    own = [cell for (_, name), cell in found.items() if name == column]
    measured = [cell["unit"] for cell in own if cell["note"] != "printed only"]
    return str((measured or [cell["unit"] for cell in own])[0])


def _number(value: float, cell: Row | None) -> str:
    factor, digits, _ = UNITS[cell["unit"] if cell else "number"]
    return f"{value * factor:,.{digits}f}"


def _remarks(cells: pa.Table) -> list[str]:
    """What the notes of single cells say, once each."""
    found: dict[str, list[str]] = {}
    for row in cells.to_pylist():
        if row["note"]:
            found.setdefault(row["note"], []).append(f"{row['row']}, {row['column']}")
    return [
        f"{note}: {'; '.join(places[:4])}{' …' if len(places) > 4 else ''}"
        for note, places in found.items()
    ]
