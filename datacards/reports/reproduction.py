"""A paper's reproduction as Markdown and as one HTML page: printed, ours, verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from routeyard.datacards.markdown import cell, table
from routeyard.datacards.reports.study import UNITS
from routeyard.datacards.site.language import markdown as as_html
from routeyard.datacards.site.language import single_page

Row = Mapping[str, Any]


def markdown(found: Row) -> str:
    """The reproduction as Markdown.

    Args:
        found: paper, title, reference, summary, items, cells (`routeyard reproduce --json`).
    """
    head = ["printed", "computed", "equal", "differs", "cannot be computed"]
    lines = [
        f"# {cell(found['title'])}",
        "",
        f"{cell(found['reference'])}; made by `routeyard reproduce {found['paper']}`.",
        "",
        *table(head, [[str(found["summary"][name]) for name in head]], [True] * len(head)),
        "",
        "Equal: within half a unit of the last printed digit, or the printed value lies in the "
        "95 % interval. A value computed on other data than the paper's is shown, and its cell "
        "counts as not computed.",
    ]
    cells = {name: list(own) for name, own in groupby(found["cells"], lambda one: one["item"])}
    for item in found["items"]:
        lines += ["", *_item(item, cells.get(item["item"], []))]
    return "\n".join(lines) + "\n"


def _item(item: Row, cells: Sequence[Row]) -> Iterator[str]:
    yield f"## {cell(item['item'])}: {cell(item['title'])}"
    yield ""
    made = dict.fromkeys(item["made"].values())
    on = f", computed on {', '.join(f'`{name}`' for name in made)}" if made else ""
    by = f" by `routeyard study {item['study']}`" if made and item["study"] else ""
    yield f"{cell(item['where'])}{on}{by}."
    if cells:
        yield ""
        columns = dict.fromkeys(one["column"] for one in cells)
        yield from table(["row", *map(cell, columns)], list(_grid(cells)))
    notes: dict[str, list[str]] = {}
    for one in cells:
        if one["reason"]:
            notes.setdefault(one["reason"], []).append(f"{one['row']}, {one['column']}")
    yield ""
    for reason, places in notes.items():
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        yield f"- {cell(reason)} ({cell('; '.join(places[:3]))}{more})"
    for benchmark, reason in item["missing"].items():
        if reason not in notes:
            yield f"- {cell(benchmark)}: {cell(reason)}"


def _grid(cells: Sequence[Row]) -> Iterator[list[str]]:
    columns = list(dict.fromkeys(one["column"] for one in cells))
    found = {(one["row"], one["column"]): one for one in cells}
    for row in dict.fromkeys(one["row"] for one in cells):
        yield [cell(row), *(shown(found.get((row, column))) for column in columns)]


#: How a verdict is shown behind ours.
SIGNS = {"equal": "=", "differs": "≠", "cannot be computed": "?"}


def shown(one: Row | None) -> str:
    """Printed value, then ours with its interval, then the sign of the verdict."""
    if one is None:
        return ""
    if one["value"] is None:
        return f"{cell(one['printed'])} / – {SIGNS[one['verdict']]}"
    factor, digits, _ = UNITS[one["unit"]]
    digits = max(digits, len(one["printed"].partition("±")[0].partition(".")[2]))

    def text(value: float) -> str:
        return f"{value * factor:,.{digits}f}"

    ours = text(one["value"])
    if one["low"] is not None and one["high"] is not None:
        ours += f" \\[{text(one['low'])}, {text(one['high'])}\\]"
    return f"{cell(one['printed'])} / {ours} {SIGNS[one['verdict']]}"


def page(title: str, text: str) -> str:
    """The Markdown as one HTML page that asks nothing of any server."""
    return single_page("reproduction.html.jinja", "site.js", title=title, text=as_html(text))
