"""Charts of cards, reports and the site: one grammar, one look.

A chart is a Vega-Lite specification (`vega`) over rows of plain values; `draw` renders
it to SVG offline. Every axis has a title and a unit, and a model has the same colour and sign
in every chart of its release.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import resource
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from routeyard.schemas.text import own_table

# Colour and sign of every model or router: safe for the colour-blind, the same everywhere.

#: Okabe and Ito's hues, shifted until each keeps a contrast of 3:1 on white and on #14181d.
COLOURS = (
    "#0a7bc2", "#d0570a", "#0b8f6a", "#b8608f", "#a8780a", "#8a63b8", "#8b7043", "#4a83b0",
)  # fmt: skip
SIGNS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
#: What routers and models are compared with is dashed and without hue.
REFERENCES = ("oracle", "task oracle", "random mix", "best single", "uniform random")
GREY = "#808890"


def colours(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Name → (colour, sign), by the place among the sorted names of a release.

    Eight hues carry six signs each: 48 names are told apart, later ones share both
    and are told apart by their labels.
    """
    return {
        name: (COLOURS[k % len(COLOURS)], SIGNS[k // len(COLOURS) % len(SIGNS)])
        for k, name in enumerate(sorted(set(names)))
    }


def fill(colour: str, sign: str, *, of: int = 0) -> str:
    """The colour of a bar: paler where hues come round again, since a bar has no sign; one colour
    for all where `of` names are more than hues and their paler ones can tell apart."""
    if of > 2 * len(COLOURS):
        return COLOURS[0]
    if sign == SIGNS[0]:
        return colour
    parts = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{(part + 2 * 208) // 3:02x}" for part in parts)


# Which points of a scatter get a label, and on which side, so that no two overlap.

Box = tuple[float, float, float, float]
#: Pixels: the mean width of a character at 12 px, the height of a line, and the sign.
_WIDE, _HIGH, _SIGN = 6.8, 13.0, 6.0
#: (anchor, dx, dy) in the order in which they are tried.
SIDES = (("left", 8.0, 0.0), ("right", -8.0, 0.0), ("left", 7.0, -12.0), ("left", 7.0, 12.0),
         ("right", -7.0, -12.0), ("right", -7.0, 12.0), ("center", 0.0, -14.0),
         ("center", 0.0, 14.0))  # fmt: skip


def place(
    points: Sequence[tuple[float, float, str]],
    width: float,
    height: float,
    *,
    blocked: Sequence[Box] = (),
) -> list[int | None]:
    """For each (x, y, label) in pixels the number of its side, or None where there is no room.

    Earlier points choose first, so give the ones that matter most first. A label stays
    inside the frame and touches no sign, no other label and nothing `blocked`.
    """
    signs = [(x - _SIGN, y - _SIGN, x + _SIGN, y + _SIGN) for x, y, _ in points]
    taken: list[Box] = []
    numbers: list[int | None] = []
    for k, (x, y, label) in enumerate(points):
        others = [*taken, *signs[:k], *signs[k + 1 :], *blocked]
        boxes = [_box(x + dx, y + dy, label, anchor) for anchor, dx, dy in SIDES]
        free = (
            side
            for side, box in enumerate(boxes)
            if box[0] >= 0 and box[2] <= width and box[1] >= -8 and box[3] <= height + 8
            and not any(_touch(box, other) for other in others)
        )  # fmt: skip
        numbers.append(side := next(free, None))
        if side is not None:
            taken.append(boxes[side])
    return numbers


def _box(x: float, y: float, label: str, anchor: str) -> Box:
    wide = _WIDE * len(label)
    left = x - {"left": 0.0, "center": wide / 2, "right": wide}[anchor]
    return (left, y - _HIGH / 2, left + wide, y + _HIGH / 2)


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


# Charts of `charts.yaml`, with their values put in.

Spec = dict[str, Any]


@cache
def _templates() -> dict[str, Any]:
    templates: dict[str, Any] = own_table(Path(__file__).with_name("charts.yaml"))
    return templates


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    """A template with `@name` replaced, and without layers whose `when` is false."""
    if isinstance(part, str):
        return values[part[1:]] if part[:1] == "@" else part
    if isinstance(part, list):
        return [
            _filled(item, values)
            for item in part
            if not isinstance(item, dict) or "when" not in item or values[item["when"]]
        ]
    if isinstance(part, dict):
        return {key: _filled(item, values) for key, item in part.items() if key != "when"}
    return part


def spec(name: str, **values: Any) -> Any:
    """A chart, or some layers, of `charts.yaml`."""
    return _filled(_templates()[name], values)


# Names in charts: cut to fit, cleared of what no SVG can hold; axes and legends of names.

#: Characters of a name that a chart shows.
LONGEST = 34
#: What XML 1.0 has no place for (its section 2.2): a name with it would end the drawing.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Text from outside as an SVG can hold it."""
    return _NO_XML.sub("\ufffd", text)


def short(name: str) -> str:
    """A name that fits beside a chart, its end kept: versions are there."""
    flat = " ".join(clean(name).split())
    return flat if len(flat) <= LONGEST else flat[:20] + "…" + flat[-(LONGEST - 21) :]


def named(labels: Iterable[str]) -> str:
    """Vega expression: a place → its label. JSON strings are strings of that language too."""
    return f"{json.dumps([short(label) for label in labels])}[datum.value]"


def room(labels: Iterable[str]) -> float:
    """Pixels that the longest label takes in a wide font: a page's may be wider than the
    one the renderer measures with, and the axis title must stay clear of it."""
    return 7.2 * max((len(short(label)) for label in labels), default=0) + 6


def name_axis(labels: Sequence[str], **options: Any) -> Spec:
    """An axis with one name per place, wide enough for the longest."""
    options = {"ticks": False, "minExtent": room(labels), **options}
    return {"labelExpr": named(labels), "labelOverlap": False, **options}


def name_legend(title: str, labels: Sequence[str]) -> Spec:
    """A legend below the chart with one name per place."""
    # Columns are laid out by the renderer's font; a page's may be wider.
    longest = max((len(short(label)) for label in labels), default=0)
    columns = 3 if longest <= 12 else 2 if longest <= 22 else 1
    return {
        "title": title, "orient": "bottom", "columns": columns,
        "columnPadding": 2.5 * longest + 20, "labelLimit": 0, "labelExpr": named(labels),
    }  # fmt: skip


def level(value: float, share: bool) -> str:
    """A value as text: shares in per cent."""
    return f"{100 * value:.1f} %" if share else f"{value:.4g}"


# Renders a chart to SVG text: offline, and the same rows give the same bytes.

_SVG = "http://www.w3.org/2000/svg"
_STYLE = Path(__file__).with_name("style.json").read_text(encoding="utf-8")
#: Between a mark's words and the address, on the questions page, of what is behind it.
LINK = "\u241e"
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
#: Attributes that hold coordinates; three digits after the point are beyond what is seen.
_PLACES = frozenset({"d", "transform", "x", "y", "x1", "x2", "y1", "y2"})


@dataclass(frozen=True, slots=True)
class Look:
    """Colours of a chart that do not depend on its data, and how much wider than on paper it is."""

    ink: str
    soft: str
    grid: str
    background: str | None
    stretch: float = 1.0

    def wide(self, pixels: int) -> int:
        """A width on paper, as wide as the chart's place allows."""
        return round(self.stretch * pixels)


#: A separate file: on white, whatever page shows it.
PAPER = Look(ink="#1f2933", soft="#52606d", grid="#e1e5ea", background="#ffffff")
#: Inside a page: the page's text colour, so that it reads in light and dark.
PAGE = Look(ink="currentColor", soft="currentColor", grid="#8a94a055", background=None, stretch=1.7)


#: Inside a page on a phone: as wide as the screen.
PHONE = replace(PAGE, stretch=0.5)


#: Bytes of address space that the engine reserves at once; it uses little of it.
_RESERVED = 66 << 30
#: Why a plot is not drawn.
NO_ROOM = (
    f"drawing reserves {_RESERVED / 1e9:.0f} GB of address space, which the limit of this process "
    "does not leave (`ulimit -v unlimited` lifts it)"
)


def can_draw() -> bool:
    """Whether the limit of address space, if there is one, leaves room to draw."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return most == resource.RLIM_INFINITY or most > _RESERVED + (4 << 30)


def draw(
    chart: Spec,
    rows: Sequence[Mapping[str, Any]],
    *,
    name: str,
    title: str,
    look: Look = PAPER,
    series: bool = False,
) -> str:
    """SVG text of a chart over `rows`, or of why it is not drawn.

    Args:
        chart: In Vega-Lite's grammar, without data; its width is that on paper.
        rows: What it shows: plain values, whose text is untrusted.
        name: Prefix of every id in the SVG, so that several fit in one page and none
            depends on what was drawn before.
        title: What a screen reader says of the whole picture.
        series: Each mark's description starts with the number of its series and `|`; the
            page's script shows and hides series by that number.
    """
    if not can_draw():
        words = f"Not drawn: {NO_ROOM}"
        return (
            f'<svg xmlns="{_SVG}" viewBox="0 0 900 40" role="img" aria-label="{words}">'
            f'<text x="0" y="24" font-size="11" fill="{look.soft}">{words}</text></svg>'
        )
    import vl_convert

    spec = {
        "data": {"values": [_clean(row) for row in rows]},
        "config": _config(look),
        "background": look.background,
        **chart,
    }
    if isinstance(width := chart.get("width"), int):
        spec["width"] = look.wide(width)
    text = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return _settled(text, name, clean(title), says=look is PAGE, series=series)


def png(svg: str) -> bytes:
    """A drawing as pixels, twice its size for dense screens."""
    import vl_convert

    made: bytes = vl_convert.svg_to_png(svg, scale=2)
    return made


def _clean(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: clean(value) if isinstance(value, str) else value for key, value in row.items()}


def _config(look: Look) -> dict[str, Any]:
    """`style.json` in the colours of a look, which are named there as `$ink`, `$soft`, `$grid`."""
    data: dict[str, Any] = json.loads(_STYLE, object_hook=lambda obj: _coloured(obj, asdict(look)))
    return data


def _coloured(style: dict[str, Any], colours: Mapping[str, Any]) -> dict[str, Any]:
    return {k: colours.get(v[1:], v) if isinstance(v, str) else v for k, v in style.items()}


def _settled(text: str, name: str, title: str, *, says: bool, series: bool) -> str:
    """The SVG with ids of our own, short numbers, a role and a name."""
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    # The renderer's own output: well-formed, without a DTD.
    root = ET.fromstring(text)  # noqa: S314
    ids: dict[str, str] = {}
    for node in root.iter():
        if "id" in node.attrib:
            ids[node.attrib["id"]] = f"{name}-{len(ids) + 1}"
    for node in root.iter():
        for key, value in node.attrib.items():
            if key == "id":
                node.attrib[key] = ids[value]
            elif value.startswith("url(#") and value[5:-1] in ids:
                node.attrib[key] = f"url(#{ids[value[5:-1]]})"
            elif key in _PLACES:
                node.attrib[key] = _NUMBER.sub(lambda match: f"{float(match[0]):.2f}", value)
        # The picture as a whole has a name; its parts tell their values to the page's script.
        role = node.attrib.pop("role", None)
        node.attrib.pop("aria-roledescription", None)
        node.attrib.pop("aria-hidden", None)
        label = node.attrib.pop("aria-label", None)
        if says and label is not None and role == "graphics-symbol" and "class" not in node.attrib:
            number, bar, rest = label.partition("|")
            if series and bar:
                node.set("data-series", number)
                label = rest
            label, _, link = label.partition(LINK)
            if link:
                node.set("data-link", link)
            if label:
                node.set("data-says", label)
    root.set("role", "img")
    root.set("aria-label", title)
    heading = ET.Element(f"{{{_SVG}}}title")
    heading.text = title
    root.insert(0, heading)
    return ET.tostring(root, encoding="unicode") + "\n"


# Bars by name, with intervals and printed values; stacked shares; histograms.

#: Different shares up to which each has its own bar.
_BARS_FEW = 31


def bars(
    values: Sequence[Mapping[str, Any]],
    *,
    of: str,
    value: str,
    form: str = ".2f",
    dots: bool = False,
    **how: Any,
) -> str:
    """Horizontal bars in the given order; `of` names the bars, `value` what they measure.

    Args:
        form: Format of the values; with a sign (`+.1f`) zero is drawn as a line beside dots.
        dots: Dots instead of bars: where zero is nothing (a rank), or values are differences.
        values: name, value and, if known, low and high (an interval, drawn as a line) and
            printed (what a paper prints, drawn as a diamond).
        how: `name`, `title` and `look`, as of `draw`.
    """
    rows: list[dict[str, Any]] = [
        {
            "k": k,
            "v": row["value"],
            **{key: row.get(key) for key in ("low", "high", "printed")},
            "says": _bar_text(row, form),
        }
        for k, row in enumerate(values)
    ]
    # Dots that say more or less than something are seen beside that: zero.
    signed = form.startswith("+")
    chart = spec(
        "bars", of=of, value=value, names=name_axis([row["name"] for row in values], grid=False),
        scale={"zero": signed or not dots} | ({"padding": 8} if dots else {}),
        bar=not dots, dots=dots, zero=dots and signed,
        intervals=any(row["low"] is not None for row in rows),
        printed=any(row["printed"] is not None for row in rows),
    )  # fmt: skip
    return draw(chart, [*rows, {"zero": 0}] if dots and signed else rows, **how)


def _bar_text(row: Mapping[str, Any], form: str) -> str:
    said = f"{row['name']}: {row['value']:{form}}"
    if row.get("low") is not None and row.get("high") is not None:
        said += f" ({row['low']:{form}} to {row['high']:{form}})"
    if row.get("printed") is not None:
        said += f"; as printed {row['printed']:{form}}"
    return said


def histogram(values: Sequence[float], *, x: str, y: str, **how: Any) -> str:
    """Counts of shares: one bar per share where there are few, else twenty steps from 0 to 1."""
    rows = _of_each(values) or _of_steps(values)
    ends = [0.0, 1.0, *(row[end] for row in rows for end in "ab")]
    return draw(spec("histogram", x=x, y=y, ends=[min(ends), max(ends)]), rows, **how)


def _of_each(values: Sequence[float]) -> list[dict[str, Any]]:
    """A bar on every share, as wide as their least distance allows; none where there are many.

    Shares of 9 models are ninths: in twenty steps some bars would always be empty.
    """
    counts = Counter(round(value, 6) for value in values)
    known = sorted(counts)
    if not 1 < len(known) <= _BARS_FEW:
        return []
    nearest = min(b - a for a, b in itertools.pairwise(known))
    if nearest < 1 / _BARS_FEW:
        return []
    half = 0.45 * min(nearest, 0.1)
    return [
        {"a": at - half, "b": at + half, "n": n, "says": f"{100 * at:.3g} %: {n:,}"}
        for at, n in sorted(counts.items())
    ]


def _of_steps(values: Sequence[float]) -> list[dict[str, Any]]:
    counts = Counter(min(19, int(value * 20)) for value in values)
    return [
        {"a": k / 20, "b": (k + 1) / 20, "n": (n := counts[k]),
         "says": f"{5 * k} to {5 * k + 5} %: {n:,}"}
        for k in range(20)
    ]  # fmt: skip


def shares(rows: Sequence[Mapping[str, Any]], *, of: str, models: Sequence[str], **how: Any) -> str:
    """Stacked bars to 100 %: which model each router (`of`) asks how often.

    Args:
        rows: router, model_id, share.
        models: All models of the release, so that colours agree with its other charts.
        how: As of `bars`.
    """
    hue = colours(models)
    routers = list(dict.fromkeys(row["router"] for row in rows))
    asked = sorted({row["model_id"] for row in rows if row["share"] > 0})
    shown = [
        {
            "k": routers.index(row["router"]),
            "m": asked.index(row["model_id"]),
            "v": row["share"],
            "says": f"{row['router']} asks {row['model_id']}: {100 * row['share']:.1f} %",
        }
        for row in rows
        if row["share"] > 0
    ]
    chart = spec(
        "shares", of=of, names=name_axis(routers, grid=False), legend=name_legend("model", asked),
        colours=_scale([fill(*hue[model]) for model in asked]),
    )  # fmt: skip
    return draw(chart, shown, **how)


def changes(
    rows: Sequence[Mapping[str, Any]], *, of: str, value: str, routers: Sequence[str], **how: Any
) -> str:
    """Points with intervals around zero: how much each router gains or loses per group (`of`).

    Args:
        rows: router, group, change, low, high: differences of shares.
        routers: All routers of the evaluation, so that colours agree with its curves.
        how: As of `bars`.
    """
    hue = colours(routers)
    own = sorted({row["router"] for row in rows})
    groups = list(dict.fromkeys(row["group"] for row in rows))
    shown = [
        {
            "g": groups.index(row["group"]),
            "r": own.index(row["router"]),
            "v": row["change"],
            "low": row["low"],
            "high": row["high"],
            "says": f"{row['router']}, {row['group']}: {100 * row['change']:+.1f} points",
        }
        for row in rows
    ]
    chart = spec(
        "changes", of=of, value=value, names=name_axis(groups), legend=name_legend("router", own),
        colours=_scale([hue[router][0] for router in own]),
    )  # fmt: skip
    return draw(chart, shown, **how)


def _scale(values: Sequence[Any]) -> Spec:
    """A scale of numbers from 0 to these colours or dashes."""
    return {"domain": list(range(len(values))), "range": list(values)}


# Heatmaps: one cell per pair of a row and a column, all rows and columns named.

#: Cells of a heatmap beyond which it is a table's work, not a picture's.
MOST_CELLS = 20_000


def heatmap(
    cells: Sequence[tuple[str, str, float | None]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    value: str,
    of: tuple[str, str],
    domain: tuple[float, float] | None = None,
    share: bool = True,
    link: Callable[[str, str], str] | None = None,
    **how: Any,
) -> str:
    """SVG of (row, column, value) cells; a null value is left empty.

    Args:
        rows, columns: Names in the order in which they are shown.
        value: What a cell says, with its unit.
        of: Titles of the vertical and of the horizontal axis.
        domain: Values of the lightest and the darkest colour; by default those there are.
        share: Values are shares, shown in per cent; else they are shown as they are.
        link: (row, column) → where a cell leads on the questions page.
        how: As of `bars`.
    """
    down = {label: k for k, label in enumerate(rows)}
    across = {label: k for k, label in enumerate(columns)}
    shown: list[dict[str, Any]] = [
        {"r": down[r], "c": across[c], "v": v,
         "says": f"{r} · {c}: {level(v, share)}" + (f"{LINK}{link(r, c)}" if link else "")}
        for r, c, v in cells
        if r in down and c in across and v is not None
    ]  # fmt: skip
    values = [row["v"] for row in shown]
    low, high = domain or ((min(values), max(values)) if values else (0.0, 1.0))
    chart = spec(
        "heatmap", across=of[1], down=of[0], value=value, domain=[low, high],
        form="~p" if share else "~g", columns=list(across.values()), rows=list(down.values()),
        column_names=name_axis(columns, labelAngle=-60, orient="top", domain=False,
                               minExtent=0.87 * room(columns)),
        row_names=name_axis(rows, domain=False),
    )  # fmt: skip
    return draw(chart, shown, **how)


def agreement(
    jaccard: Sequence[Mapping[str, Any]], models: Sequence[Mapping[str, Any]], **how: Any
) -> str | None:
    """Heatmap of every two models, ordered by clustering; None where there is nothing to read.

    Args:
        jaccard: model_a, model_b, similarity, from the health report.
        models: model_id, cluster_order.
        how: `name` and `look`, as of `draw`.
    """
    order = {row["model_id"]: row["cluster_order"] or 0 for row in models}
    names = sorted({row["model_a"] for row in jaccard}, key=lambda name: order.get(name, 0))
    if not 0 < len(names) ** 2 <= MOST_CELLS:
        return None
    return heatmap(
        [(row["model_a"], row["model_b"], row["similarity"]) for row in jaccard],
        title="Agreement between every two models", rows=names, columns=names,
        value="questions both get right, of those either does", of=("model", "model"), **how,
    )  # fmt: skip


# Curves with bands: accuracy over cost of routers, log cost by default.

#: Formats of plain numbers, and of shares.
_FORMS = ("~g", "%")
_DASHES = {"oracle": [2, 2], "task oracle": [6, 3], "random mix": [8, 3, 2, 3]}


class Zone(NamedTuple):
    """A part of the plot that has its own name: `low` to `high` of an axis."""

    name: str
    axis: str
    low: float
    high: float


def series(names: Sequence[str], pool: Sequence[str] = ()) -> list[tuple[str, str, list[int]]]:
    """(name, colour, dash) of every curve: references last, grey and dashed.

    Args:
        pool: All routers of the evaluation, so that colours agree with its other charts.
    """
    hue = colours(name for name in {*names, *pool} if name not in REFERENCES)
    order = sorted(set(names), key=lambda name: (name in REFERENCES, name))
    return [
        (name, GREY, _DASHES.get(name, [4, 4]))
        if name in REFERENCES
        else (name, hue[name][0], [1, 0])
        for name in order
    ]


def curves(
    points: Sequence[Mapping[str, Any]],
    *,
    x: str,
    y: str,
    log: bool = False,
    shares: tuple[bool, bool] = (False, True),
    zones: Sequence[Zone] = (),
    straight: tuple[float, float] | None = None,
    pool: Sequence[str] = (),
    legend: bool = True,
    apart: Sequence[str] = (),
    look: Look = PAPER,
    **how: Any,
) -> str:
    """SVG of one curve per router.

    Args:
        points: router, point, x, y and, for the band, low and high.
        x, y: Titles of the axes, with units.
        log: A logarithmic x axis; points at or below zero have no place on it.
        shares: Whether x and y are shares, shown in per cent.
        zones: Shaded parts with names.
        straight: y at x = 0 and at x = 1 of a straight dotted line: chance.
        pool: As for `series`.
        legend: False where the page draws its own.
        apart: Curves whose points are not joined.
        how: `name` and `title`, as of `draw`.
    """
    known = [p for p in points if p["y"] is not None and (not log or p["x"] > 0)]
    drawn = series([p["router"] for p in known], pool)
    names = [name for name, _, _ in drawn]
    rows = [_point(p, names.index(p["router"]), shares) for p in known]
    others: list[Spec] = []
    for zone in zones:
        place = {"own": f"datum.zone === {zone.name!r}", "title": x if zone.axis == "x" else y}
        others += spec(f"zone_{zone.axis}", **place, at=look.wide(560) - 40)
        rows.append({"zone": zone.name, zone.axis: zone.low, f"{zone.axis}2": zone.high})
    if straight is not None:
        others += spec("chance")
        rows += [{"chance": share, "sx": share, "sy": y} for share, y in enumerate(straight)]
    chart = spec(
        "curves", x=x, y=y, x_form=_FORMS[shares[0]], y_form=_FORMS[shares[1]],
        # The other rows are no points of curves.
        own="isValid(datum.k)" if others else "true",
        joined=" && ".join(f"datum.k !== {names.index(item)}" for item in names if item in apart)
        or "true",
        along={"type": "log" if log else "linear", "zero": False, "nice": not log},
        colours=_scale([colour for _, colour, _ in drawn]),
        dashes=_scale([dash for _, _, dash in drawn]),
        legend={"title": "curve", "orient": "bottom", "columns": 3, "symbolOpacity": 1,
                "symbolType": "stroke", "labelExpr": named(names)} if legend else None,
    )  # fmt: skip
    chart["layer"] = [*others, *chart["layer"]]
    return draw(chart, rows, look=look, series=True, **how)


def _point(p: Mapping[str, Any], k: int, shares: tuple[bool, bool]) -> dict[str, Any]:
    return {
        "k": k,
        **{key: p.get(key) for key in ("point", "x", "y", "low", "high")},
        "curve": f"{k}|",
        "says": f"{k}|{p['router']}: {level(p['y'], shares[1])} at {level(p['x'], shares[0])}",
    }


# Charts of a pool: accuracy per model, and accuracy over cost with the frontier.

Row = Mapping[str, Any]
_WIDTH, _HEIGHT = 560, 380
#: Models up to which each one's interval is drawn in a plot of accuracy over cost.
_MODELS_FEW = 12


def accuracy_bars(models: Sequence[Row], *, pool: Iterable[str], look: Look = PAPER) -> str:
    """Accuracy of every model with its interval, best first, and the oracle on the same questions.

    The oracle is one line where all models were asked the same questions, else a
    tick beside each bar.

    Args:
        models: model_id, accuracy and, if known, low, high and oracle: shares in [0, 1].
        pool: All models of the release, so that colours agree with its other charts.
    """
    hue = colours(pool)
    oracles = [row["oracle"] for row in models if row.get("oracle") is not None]
    item = bool(oracles) and len(oracles) == len(models) and max(oracles) - min(oracles) < 1e-9
    rows: list[dict[str, Any]] = [
        {
            "rank": rank,
            "y": row["accuracy"],
            "low": row.get("low"),
            "high": row.get("high"),
            "oracle": None if item else row.get("oracle"),
            "colour": fill(*hue[row["model_id"]], of=len(hue)),
            "says": _models_says(row, look),
        }
        for rank, row in enumerate(models)
    ]
    words = "per-query oracle" if item else "per-query oracle on the model's questions"
    chart = spec(
        "accuracy", names=name_axis([row["model_id"] for row in models], grid=False),
        line=item, ticks=oracles and not item, oracle=words if oracles else "",
        first="isValid(datum.oracle)" + ("" if item else " && datum.rank == 0"),
    )  # fmt: skip
    title = f"Accuracy of {len(models)} models with 95 % intervals"
    rows += [{"oracle": oracles[0]}] if item else []
    return draw(chart, rows, name="accuracy", title=title, look=look)


def cost_accuracy(
    models: Sequence[Row],
    *,
    pool: Iterable[str],
    simulated: bool = False,
    name: str = "cost",
    look: Look = PAPER,
) -> str:
    """Accuracy over mean cost per 1,000 questions, log cost, with the frontier as steps.

    A model has its colour and sign; routers are diamonds and references crosses, without hue.
    The frontier is that of models and routers. Labels go to routers and references, then to the
    frontier, then to whatever has room; the marks and the table beside show the others.

    Args:
        models: model_id, accuracy, cost (USD per 1,000 questions, above zero) and, where not all
            are models, role: `model`, `router` or `reference`.
        pool: All models of the release, as in `accuracy_bars`.
        simulated: Nobody paid these costs.
    """
    hue, width = colours(pool), look.wide(_WIDTH)
    best = frontier([row for row in models if row.get("role") != "reference"])
    logs = [math.log10(row["cost"]) for row in models]
    pad = max((max(logs) - min(logs)) * 0.06, 0.1)
    low, high = min(logs) - pad, max(logs) + pad
    ordered = sorted(
        models,
        key=lambda m: (
            m.get("role", "model") == "model", m["model_id"] not in best, -m["accuracy"]
        ),
    )  # fmt: skip
    wide = [row for row in models if row.get("low") is not None and _spread(row, models, look)]
    levels = [row["accuracy"] for row in models]
    levels += [row[end] for row in wide for end in ("low", "high")]
    bottom, top = max(0.0, min(levels) - 0.06), min(1.0, max(levels) + 0.06)
    at = {
        row["model_id"]: (
            (math.log10(row["cost"]) - low) / (high - low) * width,
            (1 - (row["accuracy"] - bottom) / (top - bottom)) * _HEIGHT,
        )
        for row in models
    }
    labels = [(*at[row["model_id"]], short(row["model_id"])) for row in ordered]
    sides = place(labels, width, _HEIGHT, blocked=_steps([at[name] for name in best]))
    rows = [
        {
            "x": row["cost"],
            "y": row["accuracy"],
            **_sign(row, hue, look),
            "frontier": row["model_id"] in best,
            "low": row.get("low") if _spread(row, models, look) else None,
            "high": row.get("high"),
            "label": label,
            "side": side,
            "says": _models_says(row, look),
        }
        for row, (_, _, label), side in zip(ordered, labels, sides, strict=True)
    ]
    along, end = ("mean cost", ", log scale") if width >= 400 else ("cost", "")
    usd = "simulated USD" if simulated else "USD"
    axes = {
        "cost": f"{along} ({usd} per 1,000 questions{end})",
        "across": {"type": "log", "domain": [10**low, 10**high], "nice": False},
        "up": {"domain": [bottom, top], "nice": False},
    }
    chart = spec("cost", intervals=wide, **axes)
    for k in sorted({side for side in sides if side is not None}):
        anchor, dx, dy = SIDES[k]
        own = f"datum.side === {k}"
        chart["layer"] += spec("label", own=own, anchor=anchor, dx=dx, dy=dy, **axes)
    title = f"Accuracy over mean cost of {len(models)} models; the dashed line is the frontier"
    return draw(chart, rows, name=name, title=title, look=look)


def _spread(row: Row, models: Sequence[Row], look: Look) -> bool:
    """Whether a mark has its interval: each router's, and on pages each model's of few."""
    role = str(row.get("role", "model"))
    if look is PAPER:
        return role == "router"
    few = sum(model.get("role", "model") == "model" for model in models) <= _MODELS_FEW
    return role == "router" or (role == "model" and few)


def _sign(row: Row, hue: Mapping[str, tuple[str, str]], look: Look) -> dict[str, Any]:
    """Colour, shape and size of a mark; what is no model has no hue."""
    if row.get("role", "model") == "model":
        colour, sign = hue[row["model_id"]]
        return {"colour": colour, "sign": sign, "size": 75}
    router = row["role"] == "router"
    return {"colour": look.ink, "sign": "diamond" if router else "cross", "size": 130}


def _steps(corners: Sequence[tuple[float, float]]) -> list[Box]:
    """Thin boxes around the lines of the frontier, in pixels."""
    steps: list[Box] = []
    for (x, y), (to_x, to_y) in itertools.pairwise(corners):
        steps += [(x, y - 1, to_x, y + 1), (to_x - 1, to_y, to_x + 1, y)]
    return steps


def frontier(models: Sequence[Row]) -> list[str]:
    """Models that no other beats at the same cost or less, cheapest first."""
    results: list[str] = []
    best = -math.inf
    for row in sorted(models, key=lambda m: (m["cost"], -m["accuracy"], m["model_id"])):
        if row["accuracy"] > best:
            best = row["accuracy"]
            results.append(row["model_id"])
    return results


def _models_says(row: Row, look: Look) -> str:
    said = f"{row['model_id']}: accuracy {100 * row['accuracy']:.1f} %"
    if row.get("low") is not None:
        said += f" ({100 * row['low']:.1f} to {100 * row['high']:.1f} %)"
    if row.get("cost") is not None:
        said += f", ${row['cost']:.3g} per 1,000 questions"
    if look is not PAPER and row.get("role", "model") == "model":
        said += LINK + urlencode({"a": row["model_id"], "show": "a-wrong"})
    return said
