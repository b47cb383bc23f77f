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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

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
) -> list[tuple[str, float, float] | None]:
    """For each (x, y, label) in pixels: (anchor, dx, dy), or None where there is no room.

    Earlier points choose first, so give the ones that matter most first. A label stays
    inside the frame and touches no sign, no other label and nothing `blocked`.
    """
    signs = [(x - _SIGN, y - _SIGN, x + _SIGN, y + _SIGN) for x, y, _ in points]
    taken: list[Box] = []
    found: list[tuple[str, float, float] | None] = []
    for k, (x, y, label) in enumerate(points):
        others = [box for j, box in enumerate(signs) if j != k]
        chosen = None
        for anchor, dx, dy in SIDES:
            box = _box(x + dx, y + dy, label, anchor)
            inside = box[0] >= 0 and box[2] <= width and box[1] >= -8 and box[3] <= height + 8
            if inside and not any(_touch(box, other) for other in (*taken, *others, *blocked)):
                taken.append(box)
                chosen = (anchor, dx, dy)
                break
        found.append(chosen)
    return found


def _box(x: float, y: float, label: str, anchor: str) -> Box:
    wide = _WIDE * len(label)
    left = x - {"left": 0.0, "center": wide / 2, "right": wide}[anchor]
    return (left, y - _HIGH / 2, left + wide, y + _HIGH / 2)


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


# Vega-Lite's grammar in plain dictionaries: marks, what they encode, layers of them.
#
# https://vega.github.io/vega-lite/docs/ has what each property means.

Spec = dict[str, Any]
_TYPES = {"Q": "quantitative", "O": "ordinal", "N": "nominal"}


def properties(**given: Any) -> Spec:
    """Properties of a scale, an axis or a legend.

    >>> properties(type="log", nice=False)
    {'type': 'log', 'nice': False}
    """
    return given


def field(column: str, **given: Any) -> Spec:
    """What a channel shows: a column of the rows with its type, Q, O or N.

    >>> field("x:Q", title="cost")
    {'field': 'x', 'type': 'quantitative', 'title': 'cost'}
    """
    name, _, kind = column.partition(":")
    return {"field": name, "type": _TYPES[kind], **given}


def until(column: str) -> Spec:
    """The other end of what `x` or `y` shows, for `x2` and `y2`: of the same type."""
    return {"field": column}


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks of one kind, one for each row for which `where` is true."""

    kind: str
    style: Mapping[str, Any]
    where: Sequence[str]

    def encode(self, **channels: Spec) -> Spec:
        """The layer in which they show this: channel → what."""
        layer: Spec = {"mark": {"type": self.kind, **self.style}, "encoding": channels}
        return layer | (
            {"transform": [{"filter": one} for one in self.where]} if self.where else {}
        )


def mark(kind: str, *where: str | None, **style: Any) -> Marks:
    """Marks of that kind for each row, or for those for which every `where` is true."""
    return Marks(kind, style, [one for one in where if one])


def alone(layer: Spec, **size: Any) -> Spec:
    """A chart of one layer; `size` as of `layered`."""
    return {**layer, **size}


def layered(layers: Sequence[Spec], **size: Any) -> Spec:
    """A chart of layers, the last on top.

    Args:
        size: `width` and `height`: pixels, or `step` of them for each place.
    """
    return {"layer": list(layers), **size}


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
    return properties(labelExpr=named(labels), labelOverlap=False, **options)


def name_legend(title: str, labels: Sequence[str]) -> Spec:
    """A legend below the chart with one name per place."""
    # Columns are laid out by the renderer's font; a page's may be wider.
    longest = max((len(short(label)) for label in labels), default=0)
    columns = 3 if longest <= 12 else 2 if longest <= 22 else 1
    return properties(
        title=title, orient="bottom", columns=columns, columnPadding=2.5 * longest + 20,
        labelLimit=0, labelExpr=named(labels),
    )  # fmt: skip


def level(value: float, share: bool) -> str:
    """A value in words: shares in per cent."""
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
        chart: In Vega-Lite's grammar, without data.
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
    found: dict[str, Any] = json.loads(_STYLE, object_hook=lambda one: _coloured(one, asdict(look)))
    return found


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
                node.attrib[key] = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}", value)
        # The picture as a whole has a name; its parts tell their values to the page's script.
        role = node.attrib.pop("role", None)
        node.attrib.pop("aria-roledescription", None)
        node.attrib.pop("aria-hidden", None)
        label = node.attrib.pop("aria-label", None)
        if says and label is not None and role == "graphics-symbol" and "class" not in node.attrib:
            number, bar, told = label.partition("|")
            if series and bar:
                node.set("data-series", number)
                label = told
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

_BLUE, _ORANGE = "#0a7bc2", "#d0570a"
#: Different shares up to which each has its own bar.
_BARS_FEW = 31
_DIAMOND = {"shape": "diamond", "filled": True, "aria": False}


def bars(
    values: Sequence[Mapping[str, Any]],
    *,
    name: str,
    title: str,
    of: str,
    value: str,
    form: str = ".2f",
    dots: bool = False,
    look: Look = PAPER,
) -> str:
    """Horizontal bars in the given order; `of` names the bars, `value` what they measure.

    Args:
        form: Format of the values; with a sign (`+.1f`) zero is drawn as a line beside dots.
        dots: Dots instead of bars: where zero is nothing (a rank), or values are differences.
        values: name, value and, if known, low and high (an interval, drawn as a line) and
            printed (what a paper prints, drawn as a diamond).
    """
    rows = [
        {
            "k": k,
            "v": row["value"],
            **{key: row.get(key) for key in ("low", "high", "printed")},
            "says": _told(row, form),
        }
        for k, row in enumerate(values)
    ]
    along = field("k:O", title=of, axis=name_axis([row["name"] for row in values], grid=False))
    # Dots that say more or less than something are seen beside that: zero.
    signed = form.startswith("+")
    apart = {"padding": 8} if dots else {}
    across = field("v:Q", title=value, scale=properties(zero=signed or not dots, **apart))
    own = "isValid(datum.k)" if dots and signed else None
    shape = (
        mark("point", own, filled=True, size=80, opacity=1, color=_BLUE)
        if dots
        else mark("bar", color=_BLUE)
    )
    layers = [shape.encode(x=across, y=along, description=field("says:N"))]
    if dots and signed:
        rows.append({"zero": 0})
        zero = mark("rule", "isValid(datum.zero)", strokeWidth=1.5, aria=False)
        layers.append(zero.encode(x=field("zero:Q")))
    if any(row.get("low") is not None for row in rows):
        layers.append(
            mark(
                "rule", "isValid(datum.low) && isValid(datum.high)", strokeWidth=1.5, aria=False
            ).encode(x=field("low:Q", title=value), x2=until("high"), y=along)
        )
    if any(row.get("printed") is not None for row in rows):
        layers.append(
            mark("point", "isValid(datum.printed)", size=60, color=_ORANGE, **_DIAMOND).encode(
                x=field("printed:Q", title=value), y=along
            )
        )
    chart = layered(layers, width=look.wide(440), height=properties(step=19))
    return draw(chart, rows, name=name, title=title, look=look)


def _told(row: Mapping[str, Any], form: str) -> str:
    said = f"{row['name']}: {row['value']:{form}}"
    if row.get("low") is not None and row.get("high") is not None:
        said += f" ({row['low']:{form}} to {row['high']:{form}})"
    if row.get("printed") is not None:
        said += f"; as printed {row['printed']:{form}}"
    return said


def histogram(
    values: Sequence[float], *, name: str, title: str, x: str, y: str, look: Look = PAPER
) -> str:
    """Counts of shares: one bar per share where there are few, else twenty steps from 0 to 1."""
    rows = _of_each(values) or _of_steps(values)
    ends = [0.0, 1.0, *(row[end] for row in rows for end in "ab")]
    chart = alone(
        mark("bar", color=_BLUE, orient="vertical").encode(
            x=field(
                "a:Q",
                title=x,
                axis=properties(format="%"),
                scale=properties(domain=[min(ends), max(ends)], nice=False),
            ),
            x2=until("b"),
            y=field("n:Q", title=y),
            description=field("says:N"),
        ),
        width=look.wide(500),
        height=220,
    )
    return draw(chart, rows, name=name, title=title, look=look)


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
        {
            "a": at - half,
            "b": at + half,
            "n": counts[at],
            "says": f"{100 * at:.3g} %: {counts[at]:,}",
        }
        for at in known
    ]


def _of_steps(values: Sequence[float]) -> list[dict[str, Any]]:
    counts = [0] * 20
    for value in values:
        counts[min(19, int(value * 20))] += 1
    return [
        {"a": k / 20, "b": (k + 1) / 20, "n": n, "says": f"{5 * k} to {5 * k + 5} %: {n:,}"}
        for k, n in enumerate(counts)
    ]


def shares(
    rows: Sequence[Mapping[str, Any]],
    *,
    name: str,
    title: str,
    of: str,
    models: Sequence[str],
    look: Look = PAPER,
) -> str:
    """Stacked bars to 100 %: which model each router (`of`) asks how often.

    Args:
        rows: router, model_id, share.
        models: All models of the release, so that colours agree with its other charts.
    """
    hue = colours(models)
    routers = list(dict.fromkeys(row["router"] for row in rows))
    asked = sorted({row["model_id"] for row in rows if row["share"] > 0})
    place = {model: k for k, model in enumerate(asked)}
    shown = [
        {
            "k": routers.index(row["router"]),
            "m": place[row["model_id"]],
            "v": row["share"],
            "says": f"{row['router']} asks {row['model_id']}: {100 * row['share']:.1f} %",
        }
        for row in rows
        if row["share"] > 0
    ]
    numbers = list(range(len(asked)))
    chart = alone(
        mark("bar", stroke="#14181d", strokeWidth=0.5).encode(
            x=field("v:Q", title="share of questions", axis=properties(format="%"),
                    scale=properties(domain=[0, 1])),
            y=field("k:O", title=of, axis=name_axis(routers, grid=False)),
            color=field(
                "m:O",
                scale=properties(domain=numbers, range=[fill(*hue[m]) for m in asked]),
                legend=name_legend("model", asked),
            ),
            order=field("m:O"),
            description=field("says:N"),
        ),
        width=look.wide(440), height=properties(step=22),
    )  # fmt: skip
    return draw(chart, shown, name=name, title=title, look=look)


def changes(
    rows: Sequence[Mapping[str, Any]],
    *,
    name: str,
    title: str,
    of: str,
    value: str,
    routers: Sequence[str],
    look: Look = PAPER,
) -> str:
    """Points with intervals around zero: how much each router gains or loses per group (`of`).

    Args:
        rows: router, group, change, low, high: differences of shares.
        routers: All routers of the evaluation, so that colours agree with its curves.
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
    across = properties(format="+%", title=value)
    down = field("g:O", title=of, axis=name_axis(groups))
    beside = field("r:O")
    colour = field(
        "r:O",
        scale=properties(domain=list(range(len(own))), range=[hue[r][0] for r in own]),
        legend=name_legend("router", own),
    )
    place = {"y": down, "yOffset": beside, "color": colour}
    spread = mark("rule", strokeWidth=1.5, aria=False).encode(
        x=field("low:Q", axis=across), x2=until("high"), **place
    )
    points = mark("point", filled=True, size=45, opacity=1).encode(
        x=field("v:Q", axis=across), **place, description=field("says:N")
    )
    chart = layered([spread, points], width=look.wide(440), height=properties(step=11))
    return draw(chart, shown, name=name, title=title, look=look)


# Heatmaps: one cell per pair of a row and a column, all rows and columns named.

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
        {"r": down[r], "c": across[c], "v": v, "says": _grids_says(r, c, level(v, share), link)}
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


def _grids_says(row: str, column: str, told: str, link: Callable[[str, str], str] | None) -> str:
    words = f"{row} · {column}: {told}"
    return words if link is None else f"{words}{LINK}{link(row, column)}"


# Curves with bands: accuracy over cost of routers, log cost by default.

_DASHES = {"oracle": [2, 2], "task oracle": [6, 3], "random mix": [8, 3, 2, 3]}
_LINES_WIDTH, _LINES_HEIGHT = 560, 360


@dataclass(frozen=True, slots=True)
class Zone:
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
    name: str,
    title: str,
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
    """
    kept = [p for p in points if p["y"] is not None and (not log or p["x"] > 0)]
    drawn = series([p["router"] for p in kept], pool)
    rows = _rows(kept, {told[0]: k for k, told in enumerate(drawn)}, shares)
    span = field(
        "x:Q",
        scale=properties(type="log" if log else "linear", zero=False, nice=not log),
        axis=properties(title=x, format="%" if shares[0] else "~g"),
    )
    axis = properties(title=y, format="%" if shares[1] else "~g")
    up = field("y:Q", scale=properties(zero=False), axis=axis)
    low = field("low:Q", scale=properties(zero=False), axis=axis)
    numbers = list(range(len(drawn)))
    colour = field(
        "k:O",
        scale=properties(domain=numbers, range=[told[1] for told in drawn]),
        legend=properties(
            title="curve", orient="bottom", columns=3, symbolOpacity=1, symbolType="stroke",
            labelExpr=named(told[0] for told in drawn),
        ) if legend else None,
    )  # fmt: skip
    dash = field(
        "k:O",
        scale=properties(domain=numbers, range=[told[2] for told in drawn]),
        legend=None,
    )
    width = look.wide(_LINES_WIDTH)
    others = [*_zones(zones, x, y, width), *_straight(straight)]
    own = "isValid(datum.k)" if others else None  # the other rows are no points of curves
    band = mark("area", own, "isValid(datum.low) && isValid(datum.high)", opacity=0.13).encode(
        x=span, y=low, y2=until("high"), color=colour, description=field("curve:N")
    )
    line = mark("line", own, _joined(drawn, apart), strokeWidth=2).encode(
        x=span,
        y=up,
        color=colour,
        strokeDash=dash,
        order=field("point:Q"),
        description=field("curve:N"),
    )
    dots = mark("point", own, filled=True, size=26, opacity=0.9).encode(
        x=span, y=up, color=colour, description=field("says:N")
    )
    layers = [*others, band, line, dots]
    rows += _marks(zones, straight)
    chart = layered(layers, width=width, height=_LINES_HEIGHT)
    return draw(chart, rows, name=name, title=title, look=look, series=True)


def _joined(drawn: Sequence[tuple[str, str, list[int]]], apart: Sequence[str]) -> str | None:
    """Which points are joined by lines; None for all."""
    loose = [k for k, told in enumerate(drawn) if told[0] in apart]
    return " && ".join(f"datum.k !== {k}" for k in loose) or None


def _rows(
    points: Sequence[Mapping[str, Any]], place: Mapping[str, int], shares: tuple[bool, bool]
) -> list[dict[str, Any]]:
    return [
        {
            "k": (k := place[p["router"]]),
            **{key: p.get(key) for key in ("point", "x", "y", "low", "high")},
            "curve": f"{k}|",
            "says": f"{k}|{p['router']}: {level(p['y'], shares[1])} at {level(p['x'], shares[0])}",
        }
        for p in points
    ]


def _marks(zones: Sequence[Zone], straight: tuple[float, float] | None) -> list[dict[str, Any]]:
    """Rows of zones and of the line of chance."""
    found: list[dict[str, Any]] = [
        {"zone": zone.name, zone.axis: zone.low, f"{zone.axis}2": zone.high} for zone in zones
    ]
    ends = () if straight is None else enumerate(straight)
    return found + [{"chance": share, "sx": share, "sy": level} for share, level in ends]


def _zones(zones: Sequence[Zone], x: str, y: str, width: int) -> list[Spec]:
    found = []
    for zone in zones:
        own = f"datum.zone === {zone.name!r}"
        shade = mark("rect", own, color="#0b8f6a", opacity=0.1, aria=False)
        words = mark("text", own, align="left", baseline="top", dx=4, dy=4, aria=False)
        if zone.axis == "x":
            where = field("x:Q", title=x)
            found.append(shade.encode(x=where, x2=until("x2")))
            found.append(words.encode(x=where, y=properties(value=0), text=field("zone:N")))
        else:
            found.append(shade.encode(y=field("y:Q", title=y), y2=until("y2")))
            found.append(
                words.encode(x=properties(value=width - 40), y=field("y2:Q"), text=field("zone:N"))
            )
    return found


def _straight(straight: tuple[float, float] | None) -> list[Spec]:
    if straight is None:
        return []
    return [
        mark("line", "isValid(datum.chance)", color=GREY, strokeDash=[2, 3], aria=False).encode(
            x=field("sx:Q"), y=field("sy:Q")
        )
    ]


# Charts of a pool: accuracy per model, and accuracy over cost with the frontier.

Row = Mapping[str, Any]
_MODELS_WIDTH, _MODELS_HEIGHT = 560, 380
#: Models up to which each one's interval is drawn in a plot of accuracy over cost.
_MODELS_FEW = 12


def accuracy_bars(
    models: Sequence[Row],
    *,
    pool: Iterable[str],
    look: Look = PAPER,
) -> str:
    """Accuracy of every model with its interval, best first, and the oracle on the same questions.

    The oracle is one line where all models were asked the same questions, else a
    tick beside each bar.

    Args:
        models: model_id, accuracy and, if known, low, high and oracle: shares in [0, 1].
        pool: All models of the release, so that colours agree with its other charts.
    """
    hue = colours(pool)
    rows: list[dict[str, Any]] = [
        {
            "rank": rank,
            "y": row["accuracy"],
            "low": row.get("low"),
            "high": row.get("high"),
            "colour": fill(*hue[row["model_id"]], of=len(hue)),
            "shown": f"{100 * row['accuracy']:.1f} %",
            "says": _models_says(row, look),
        }
        for rank, row in enumerate(models)
    ]
    names = [row["model_id"] for row in models]
    order = field("rank:O", title="model", axis=name_axis(names, grid=False))
    share = properties(domain=[0, 1])
    axis = properties(format="%", title="accuracy (share of labelled questions answered right)")
    oracles = [row["oracle"] for row in models if row.get("oracle") is not None]
    one = bool(oracles) and len(oracles) == len(models) and max(oracles) - min(oracles) < 1e-9
    bars = mark("bar", "isValid(datum.rank)" if one else None).encode(
        x=field("y:Q", scale=share, axis=axis),
        y=order,
        color=field("colour:N", scale=None),
        description=field("says:N"),
    )
    spread = mark("rule", "isValid(datum.low)", strokeWidth=1.5, aria=False).encode(
        x=field("low:Q", scale=share, axis=axis), x2=until("high"), y=order
    )
    layers = [bars, spread]
    if one:
        rows.append({"oracle": oracles[0]})
        line = "isValid(datum.oracle)"
        rule = mark("rule", line, strokeDash=[5, 4], aria=False)
        layers += [rule.encode(x=field("oracle:Q")), _said(line, "per-query oracle")]
    elif oracles:
        for row, model in zip(rows, models, strict=True):
            row["oracle"] = model.get("oracle")
        ticks = mark("tick", "isValid(datum.oracle)", thickness=2, aria=False)
        layers.append(ticks.encode(x=field("oracle:Q"), y=order))
        first = "isValid(datum.oracle) && datum.rank == 0"
        layers.append(_said(first, "per-query oracle on the model's questions"))
    chart = layered(layers, width=look.wide(440), height=properties(step=19))
    title = f"Accuracy of {len(models)} models with 95 % intervals"
    return draw(chart, rows, name="accuracy", title=title, look=look)


def _said(where: str, text: str) -> Spec:
    """Words above the oracle's mark."""
    return mark("text", where, align="right", dx=-5, baseline="bottom", aria=False).encode(
        x=field("oracle:Q"), y=properties(value=-4), text=properties(value=text)
    )


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
    hue, width = colours(pool), look.wide(_MODELS_WIDTH)
    real = [row for row in models if row.get("role") != "reference"]
    on_frontier = set(frontier(real))
    logs = [math.log10(row["cost"]) for row in models]
    pad = max((max(logs) - min(logs)) * 0.06, 0.1)
    low, high = min(logs) - pad, max(logs) + pad
    best = sorted(
        models,
        key=lambda m: (
            m.get("role", "model") == "model", m["model_id"] not in on_frontier, -m["accuracy"]
        ),
    )  # fmt: skip
    levels = [row["accuracy"] for row in models]
    wide = [row for row in models if row.get("low") is not None and _spread(row, models, look)]
    levels += [row[end] for row in wide for end in ("low", "high")]
    bottom, top = max(0.0, min(levels) - 0.06), min(1.0, max(levels) + 0.06)
    at = {
        row["model_id"]: (
            (math.log10(row["cost"]) - low) / (high - low) * width,
            (1 - (row["accuracy"] - bottom) / (top - bottom)) * _MODELS_HEIGHT,
        )
        for row in models
    }
    places = place(
        [(*at[row["model_id"]], short(row["model_id"])) for row in best],
        width,
        _MODELS_HEIGHT,
        blocked=_steps([at[name] for name in frontier(real)]),
    )
    rows = _marked(best, places, hue, on_frontier, look)
    along, end = ("mean cost", ", log scale") if width >= 400 else ("cost", "")
    usd = "simulated USD" if simulated else "USD"
    x = field(
        "x:Q",
        scale=properties(type="log", domain=[10**low, 10**high], nice=False),
        axis=properties(title=f"{along} ({usd} per 1,000 questions{end})", format="$~g"),
    )
    up = properties(domain=[bottom, top], nice=False)
    y = field(
        "y:Q",
        scale=up,
        axis=properties(title="accuracy", format="%"),
    )
    steps = mark(
        "line",
        "datum.frontier",
        interpolate="step-after",
        color="#808890",
        strokeDash=[5, 4],
        aria=False,
    ).encode(x=x, y=y, order=field("x:Q"))
    spread = mark("rule", "isValid(datum.low)", strokeWidth=1, opacity=0.6, aria=False).encode(
        x=x, y=field("low:Q", scale=up), y2=until("high")
    )
    points = mark("point", filled=True, opacity=1).encode(
        x=x,
        y=y,
        size=field("size:Q", scale=None),
        color=field("colour:N", scale=None),
        shape=field("sign:N", scale=None),
        description=field("says:N"),
    )
    words = [
        mark(
            "text", f"datum.side === {k}", align=anchor, baseline="middle", dx=dx, dy=dy, aria=False
        ).encode(x=x, y=y, text=field("label:N"))
        for k, (anchor, dx, dy) in enumerate(SIDES)
        if any(row["side"] == k for row in rows)
    ]
    layers = [steps, *([spread] if wide else []), points, *words]
    chart = layered(layers, width=width, height=_MODELS_HEIGHT)
    title = f"Accuracy over mean cost of {len(models)} models; the dashed line is the frontier"
    return draw(chart, rows, name=name, title=title, look=look)


def _marked(
    models: Sequence[Row],
    places: Sequence[Any],
    hue: Mapping[str, tuple[str, str]],
    on_frontier: Collection[str],
    look: Look,
) -> list[dict[str, Any]]:
    """A row of the chart per model, with its mark and the side of its label."""
    return [
        {
            "x": row["cost"],
            "y": row["accuracy"],
            **_sign(row, hue, look),
            "frontier": row["model_id"] in on_frontier,
            "low": row.get("low") if _spread(row, models, look) else None,
            "high": row.get("high"),
            "label": short(row["model_id"]),
            "side": None if where is None else SIDES.index(where),
            "says": _models_says(row, look),
        }
        for row, where in zip(models, places, strict=True)
    ]


def _spread(row: Row, models: Sequence[Row], look: Look) -> bool:
    """Whether a mark has its interval: each router's, and on pages each model's of few."""
    role = str(row.get("role", "model"))
    if look is PAPER:
        return role == "router"
    few = sum(one.get("role", "model") == "model" for one in models) <= _MODELS_FEW
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
    found: list[Box] = []
    for (x, y), (to_x, to_y) in itertools.pairwise(corners):
        found += [(x, y - 1, to_x, y + 1), (to_x - 1, to_y, to_x + 1, y)]
    return found


def frontier(models: Sequence[Row]) -> list[str]:
    """Models that no other beats at the same cost or less, cheapest first."""
    found: list[str] = []
    best = -math.inf
    for row in sorted(models, key=lambda m: (m["cost"], -m["accuracy"], m["model_id"])):
        if row["accuracy"] > best:
            best = row["accuracy"]
            found.append(row["model_id"])
    return found


def _models_says(row: Row, look: Look) -> str:
    said = f"{row['model_id']}: accuracy {100 * row['accuracy']:.1f} %"
    if row.get("low") is not None:
        said += f" ({100 * row['low']:.1f} to {100 * row['high']:.1f} %)"
    if row.get("cost") is not None:
        said += f", ${row['cost']:.3g} per 1,000 questions"
    if look is not PAPER and row.get("role", "model") == "model":
        said += LINK + urlencode({"a": row["model_id"], "show": "a-wrong"})
    return said
