"""A paper's reproduction as Markdown and as one HTML page: printed, ours, verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from markupsafe import Markup

from routeyard.datacards.markdown import cell, table
from routeyard.datacards.reports.study import UNITS
from routeyard.datacards.site.language import single_page

Row = Mapping[str, Any]

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
HEAD = ("printed", "computed", "equal", "differs", "cannot be computed")


class ShownCell(NamedTuple):
    """A cell as texts: the printed value, ours with its interval, sign and word of the verdict."""

    printed: str
    ours: str
    interval: str
    sign: str
    word: str


def shown(one: Row) -> ShownCell:
    """A reproduced cell as texts."""
    sign = {"equal": "=", "differs": "≠"}.get(one["verdict"], "?" if one["value"] is None else "~")
    if one["value"] is None:
        return ShownCell(one["printed"], "–", "", sign, _WORDS[sign])
    factor, digits, _ = UNITS[one["unit"]]
    digits = max(digits, len(one["printed"].partition("±")[0].partition(".")[2]))

    def text(value: float) -> str:
        return f"{value * factor:,.{digits}f}"

    known = one["low"] is not None and one["high"] is not None
    interval = f"[{text(one['low'])}, {text(one['high'])}]" if known else ""
    return ShownCell(one["printed"], text(one["value"]), interval, sign, _WORDS[sign])


def reasons(cells: Sequence[Row], missing: Mapping[str, str]) -> list[tuple[str, str]]:
    """(what differs or is missing, in which cells), each reason once."""
    notes: dict[str, list[str]] = {}
    for one in cells:
        if one["reason"]:
            notes.setdefault(one["reason"], []).append(f"{one['row']}, {one['column']}")
    found = []
    for reason, places in notes.items():
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        found.append((reason, "; ".join(places[:3]) + more))
    return found + [(why, benchmark) for benchmark, why in missing.items() if why not in notes]


def _grid(cells: Sequence[Row]) -> tuple[list[str], list[tuple[str, list[ShownCell | None]]]]:
    columns = list(dict.fromkeys(one["column"] for one in cells))
    found = {(one["row"], one["column"]): shown(one) for one in cells}
    rows = dict.fromkeys(one["row"] for one in cells)
    return columns, [(row, [found.get((row, column)) for column in columns]) for row in rows]


def _by_item(found: Row) -> dict[str, list[Row]]:
    return {name: list(own) for name, own in groupby(found["cells"], lambda one: one["item"])}


def markdown(found: Row, figures: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """The reproduction as Markdown.

    Args:
        found: paper, title, reference, command, table, items, cells (`routeyard reproduce --json`).
        figures: Table or figure → (release, path of the drawing beside the page).
    """
    lines = [
        f"# {cell(found['title'])}",
        "",
        f"{cell(found['reference'])}; made by `{cell(found['command'])}`. A cell holds "
        "the printed value, ours with its 95 % interval, and a sign:",
        "",
        *(f"- `{sign}` {_WORDS[sign]}: {meaning}" for sign, meaning in SIGNS.items()),
        "",
        *table(["item", *HEAD], [[row["item"], *(str(row[n]) for n in HEAD)]
                                 for row in found["table"] if row["printed"]]),
    ]  # fmt: skip
    cells = _by_item(found)
    for item in found["items"]:
        own = cells.get(item["item"], [])
        lines += ["", *_item(item, own, figures.get(item["item"], ()))]
    return "\n".join(lines) + "\n"


def _item(item: Row, cells: Sequence[Row], figures: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield f"## {cell(item['item'])}: {cell(item['title'])}"
    yield ""
    made = dict.fromkeys(item["made"].values())
    on = f", computed on {', '.join(f'`{name}`' for name in made)}" if made else ""
    by = f" by `routeyard study {item['study']}`" if made and item["study"] else ""
    yield f"{cell(item['where'])}{on}{by}."
    if cells:
        yield ""
        columns, rows = _grid(cells)
        body = [[cell(row), *(_text(one) for one in own)] for row, own in rows]
        yield from table(["row", *map(cell, columns)], body)
    for release, path in figures:
        yield ""
        yield f"![{cell(item['title'])}, {cell(release)}]({path})"
    yield ""
    for reason, places in reasons(cells, item["missing"]):
        yield f"- {cell(reason)} ({cell(places)})"


def _text(one: ShownCell | None) -> str:
    if one is None:
        return ""
    interval = f" {cell(one.interval)}" if one.interval else ""
    return f"{cell(one.printed)} / {one.ours}{interval} {one.sign}"


def page(found: Row, figures: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """One HTML page that asks nothing of any server.

    Args:
        found: As for `markdown`.
        figures: Table or figure → (release, its drawing as SVG, made by `reports.study.plot`).
    """
    cells = _by_item(found)
    items = []
    for item in found["items"]:
        own = cells.get(item["item"], [])
        columns, rows = _grid(own)
        drawn = [(name, Markup(svg)) for name, svg in figures.get(item["item"], ())]  # noqa: S704
        items.append(
            {
                **item,
                "on": list(dict.fromkeys(item["made"].values())),
                "columns": columns,
                "rows": rows,
                "reasons": reasons(own, item["missing"]),
                "figures": drawn,
            }
        )
    return single_page(
        "reproduction.html.jinja", "site.js", title=found["title"], found=found, shown=items,
        signs=SIGNS, words=_WORDS, styles=_STYLES, head=HEAD,
    )  # fmt: skip
