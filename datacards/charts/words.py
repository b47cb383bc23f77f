"""Names in charts: cut to fit, cleared of what no SVG can hold; axes and legends of names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from routeyard.datacards.charts.vega import Spec, properties

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
