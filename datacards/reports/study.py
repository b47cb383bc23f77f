"""A study as Markdown and as one HTML page: the cells, the paper's values beside them, a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from routeyard.datacards.card import cell, environment, table
from routeyard.datacards.charts import (
    MOST_CELLS,
    PAPER,
    REFERENCES,
    Look,
    bars,
    curves,
    heatmap,
)
from routeyard.datacards.site.language import single_page

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
        cells: The study's cells (`study_cells` of `results.yaml`).
    """
    head, body = grid(about, cells)
    lines = [
        f"## {about['title']}",
        "",
        f"{about['paper']}, {about['item']}. Release `{about['release']}` {about['version']}; "
        f"made by `routeyard study {about['name']}`.",
        "",
        *table([cell(text) for text in head], [[cell(text) for text in row] for row in body]),
    ]
    lines += ["", *(f"- {note}" for note in [*about["notes"], *_remarks(cells)])]
    return "\n".join(lines).rstrip() + "\n"


def page(about: Row, cells: pa.Table, figure: str | None) -> str:
    """One HTML page that asks nothing of any server; `figure` is in it as SVG."""
    head, body = grid(about, cells)
    return single_page(
        "study.html.jinja",
        "site.js",
        title=about["title"],
        about=about,
        head=head,
        body=body,
        notes=[*about["notes"], *_remarks(cells)],
        figure=figure,
    )


def grid(about: Row, cells: pa.Table) -> tuple[list[str], list[list[str]]]:
    """Headings and rows as texts, rows and columns in order of appearance."""
    result = {(row["row"], row["column"]): row for row in cells.to_pylist()}
    rows = list(dict.fromkeys(row for row, _ in result))
    columns = list(dict.fromkeys(column for _, column in result))
    units = {column: _unit_of(result, column) for column in columns}
    printed = {c for (_, c), cell in result.items() if cell["printed"] is not None}
    head = [str(about["rows"])]
    for column in columns:
        head.append(column + UNITS[units[column]][2])
        if column in printed:
            head.append(f"{column}, as printed")
    body = []
    for row in rows:
        line = [row]
        for column in columns:
            item = result.get((row, column))
            line.append(shown(item) if item else "")
            if column in printed:
                value = item["printed"] if item else None
                line.append("" if value is None else _number(value, item))
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


def plot(about: Row, cells: pa.Table, points: pa.Table | None, look: Look = PAPER) -> str | None:
    """The study's figure as SVG; the same cells give the same text. None without one."""
    rows = [row for row in cells.to_pylist() if row["value"] is not None]
    how: dict[str, Any] = {"name": about["name"], "title": about["title"], "look": look}
    if about["plot"] in ("bars", "dots"):
        return _bars(about, [r for r in rows if r["column"] == about["plot_column"]], **how)
    if about["plot"] == "heat":
        return _heat(about, rows, **how)
    if about["plot"] in ("lines", "points") and points is not None and points.num_rows:
        return _lines(about, points.to_pylist(), **how)
    return None


def _bars(about: Row, rows: Sequence[Row], **how: Any) -> str | None:
    if not rows:
        return None
    factor, digits, unit = UNITS[rows[0]["unit"]]
    values = [
        {"name": r["row"]}
        | {
            key: None if r[key] is None else factor * r[key]
            for key in ("value", "low", "high", "printed")
        }
        for r in rows
    ]
    if any(r["printed"] is not None for r in rows):
        unit += "; diamonds: as printed in the paper"
    return bars(
        values, of=about["rows"], value=f"{about['plot_column']}{unit}", form=f".{digits}f",
        dots=about["plot"] == "dots", **how,
    )  # fmt: skip


def _heat(about: Row, rows: Sequence[Row], **how: Any) -> str | None:
    names = list(dict.fromkeys(r["row"] for r in rows))
    columns = list(dict.fromkeys(r["column"] for r in rows))
    if not 0 < len(names) * len(columns) <= MOST_CELLS:
        return None
    factor, _, unit = UNITS[rows[0]["unit"]]
    share = rows[0]["unit"] == "percent"
    return heatmap(
        [(r["row"], r["column"], r["value"] * (1 if share else factor)) for r in rows],
        rows=names, columns=columns, value="share" if share else f"value{unit}",
        of=(about["rows"], "column of the table"), share=share, **how,
    )  # fmt: skip


def _lines(about: Row, rows: Sequence[Row], **how: Any) -> str:
    points = [{**row, "router": row["series"], "point": k} for k, row in enumerate(rows)]
    apart = {row["series"] for row in rows} - set(REFERENCES) if about["plot"] == "points" else ()
    x, y = about["axes"]
    return curves(
        points,
        x=x,
        y=y,
        shares=(x.startswith("share"), "accuracy" in y),
        apart=sorted(apart),
        **how,
    )


def _unit_of(cells: Mapping[tuple[str, str], Row], column: str) -> str:
    own = [cell for (_, name), cell in cells.items() if name == column]
    measured = [cell["unit"] for cell in own if cell["note"] != "printed only"]
    return str((measured or [cell["unit"] for cell in own])[0])


def _number(value: float, cell: Row | None) -> str:
    factor, digits, _ = UNITS[cell["unit"] if cell else "number"]
    return f"{value * factor:,.{digits}f}"


def _remarks(cells: pa.Table) -> list[str]:
    """What the notes of single cells say, once each."""
    remarks: dict[str, list[str]] = {}
    for row in cells.to_pylist():
        if row["note"]:
            remarks.setdefault(row["note"], []).append(f"{row['row']}, {row['column']}")
    return [
        f"{note}: {'; '.join(places[:4])}{' …' if len(places) > 4 else ''}"
        for note, places in remarks.items()
    ]


# A paper's reproduction as Markdown and as one HTML page: printed, ours, verdict.

#: Sign of a cell → its meaning. Verdicts differ by sign and word, not only by colour.
SIGNS = {
    "=": "within half a unit of the last printed digit, or the printed value is in the "
    "95 % interval",
    "≠": "outside both",
    "~": "computed on other data than the paper's, whose own cell cannot be computed here",
    "?": "cannot be computed, not on other data either",
}
#: Colour besides: the page's style of a right and of a wrong answer.
_STYLES = {"=": "right", "≠": "wrong"}
_WORDS = {"=": "equal", "≠": "differs", "~": "other data", "?": "not here"}
HEAD = ("printed", "computed", "equal", "differs", "not comparable")


class ShownCell(NamedTuple):
    """A cell as texts: the printed value, ours with its interval, sign and word of the verdict."""

    printed: str
    ours: str
    interval: str
    sign: str
    word: str


def reproduction_shown(row: Row) -> ShownCell:
    """A reproduced cell as texts."""
    sign = {"equal": "=", "differs": "≠"}.get(row["verdict"], "?" if row["value"] is None else "~")
    if row["value"] is None:
        return ShownCell(row["printed"], "–", "", sign, _WORDS[sign])
    factor, digits, _ = UNITS[row["unit"]]
    digits = max(digits, len(row["printed"].partition("±")[0].partition(".")[2]))

    def text(value: float) -> str:
        return f"{value * factor:,.{digits}f}"

    known = row["low"] is not None and row["high"] is not None
    interval = f"[{text(row['low'])}, {text(row['high'])}]" if known else ""
    return ShownCell(row["printed"], text(row["value"]), interval, sign, _WORDS[sign])


def reasons(cells: Sequence[Row], missing: Mapping[str, str]) -> list[tuple[str, str]]:
    """(what differs or is missing, in which cells), each reason once."""
    notes: dict[str, list[str]] = {}
    for item in cells:
        if item["reason"]:
            notes.setdefault(item["reason"], []).append(f"{item['row']}, {item['column']}")
    results = []
    for reason, places in notes.items():
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        results.append((reason, "; ".join(places[:3]) + more))
    return results + [(why, benchmark) for benchmark, why in missing.items() if why not in notes]


def _shown(report: Row, figures: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, Any]:
    """What both templates of a reproduction show."""
    cells = {name: list(own) for name, own in groupby(report["cells"], lambda entry: entry["item"])}
    items = []
    for item in report["items"]:
        own = cells.get(item["item"], [])
        columns = list(dict.fromkeys(element["column"] for element in own))
        shown = {(value["row"], value["column"]): reproduction_shown(value) for value in own}
        items.append(
            {
                **item,
                "on": list(dict.fromkeys(item["made"].values())),
                "columns": columns,
                "rows": [
                    (row, [shown.get((row, column)) for column in columns])
                    for row in dict.fromkeys(element["row"] for element in own)
                ],
                "reasons": reasons(own, item["missing"]),
                "figures": figures.get(item["item"], ()),
            }
        )
    return {
        "title": report["title"], "found": report, "shown": items, "signs": SIGNS, "words": _WORDS,
        "styles": _STYLES, "head": HEAD,
    }  # fmt: skip


def reproduction_markdown(row: Row, figures: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """The reproduction as Markdown.

    Args:
        row: paper, title, reference, command, table, items, cells (`routeyard reproduce --json`).
        figures: Table or figure → (release, path of the drawing beside the page).
    """
    return environment().get_template("reproduction.md.j2").render(**_shown(row, figures))


def reproduction_page(row: Row, figures: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """One HTML page that asks nothing of any server.

    Args:
        row: As for `reproduction_markdown`.
        figures: Table or figure → (release, its drawing as SVG, made by `reports.study.plot`).
    """
    return single_page("reproduction.html.jinja", "site.js", **_shown(row, figures))
