"""Renders a chart to SVG text: offline, and the same rows give the same bytes."""

from __future__ import annotations

import json
import re
import resource
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from routeyard.datacards.charts.vega import Spec
from routeyard.datacards.charts.words import clean

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
