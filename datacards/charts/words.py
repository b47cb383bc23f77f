"""Names in charts: cut to fit, and cleared of what no SVG can hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

#: Characters of a name that a chart shows.
LONGEST = 34
#: What XML 1.0 has no place for (its section 2.2): a name with it would end the drawing.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Text from outside as an SVG can hold it."""
    return _NO_XML.sub("\ufffd", text)


def short(name: str) -> str:
    """A name that fits beside a chart, its end kept: versions stand there."""
    flat = " ".join(clean(name).split())
    return flat if len(flat) <= LONGEST else flat[:20] + "…" + flat[-(LONGEST - 21) :]


def named(labels: Iterable[str]) -> str:
    """Vega expression: a place → its label. JSON strings are strings of that language too."""
    return f"{json.dumps([short(label) for label in labels])}[datum.value]"


def room(labels: Iterable[str]) -> float:
    """Pixels that the longest label takes in a wide font: a page's may be wider than the
    one the renderer measures with, and the axis title must stay clear of it."""
    return 7.2 * max((len(short(label)) for label in labels), default=0) + 6
