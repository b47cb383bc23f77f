"""Curves with bands: accuracy over cost of routers, log cost by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routeyard.datacards.charts.colours import GREY, REFERENCES, colours
from routeyard.datacards.charts.draw import PAPER, Look, draw
from routeyard.datacards.charts.vega import Spec, field, layered, mark, properties, until
from routeyard.datacards.charts.words import level, named

_DASHES = {"oracle": [2, 2], "task oracle": [6, 3], "random mix": [8, 3, 2, 3]}
_WIDTH, _HEIGHT = 560, 360


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
    width = look.wide(_WIDTH)
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
    chart = layered(layers, width=width, height=_HEIGHT)
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
