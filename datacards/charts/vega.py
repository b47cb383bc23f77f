"""Vega-Lite's grammar in plain dictionaries: marks, what they encode, layers of them.

https://vega.github.io/vega-lite/docs/ has what each property means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
