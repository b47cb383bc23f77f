"""Curves with bands: accuracy over cost of routers, log cost by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datacards.charts.colours import GREY, REFERENCES, colours
from datacards.charts.draw import PAPER, Look, draw

_DASHES = {"oracle": [2, 2], "task oracle": [6, 3], "random mix": [8, 3, 2, 3]}


def curves(
    points: Sequence[Mapping[str, Any]],
    *,
    name: str,
    title: str,
    x: str,
    y: str,
    log: bool,
    look: Look = PAPER,
) -> str:
    """SVG of one curve per router.

    Args:
        points: router, point, x, y and, for the band, low and high; y is a share.
        x, y: Titles of the axes, with units.
        log: A logarithmic x axis; points at or below zero have no place on it.
    """
    import altair as alt

    kept = [p for p in points if p["y"] is not None and (not log or p["x"] > 0)]
    routers = sorted({p["router"] for p in kept}, key=lambda r: (r in REFERENCES, r))
    hue = {r: c for r, (c, _) in colours(r for r in routers if r not in REFERENCES).items()}
    rows = [
        {
            "router": p["router"],
            "point": p["point"],
            "x": p["x"],
            "y": p["y"],
            "low": p.get("low"),
            "high": p.get("high"),
            "says": f"{p['router']}: {100 * p['y']:.1f} % at {p['x']:.4g}",
        }
        for p in kept
    ]
    span = alt.X(
        "x:Q",
        scale=alt.Scale(type="log" if log else "linear", zero=False, nice=not log),
        axis=alt.Axis(title=x, format="~g"),
    )
    up = alt.Y("y:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=y, format="%"))
    low = alt.Y("low:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=y, format="%"))
    colour = alt.Color(
        "router:N",
        title="router",
        scale=alt.Scale(domain=routers, range=[hue.get(r, GREY) for r in routers]),
        legend=alt.Legend(orient="bottom", columns=3, symbolOpacity=1, symbolType="stroke"),
    )
    dash = alt.StrokeDash(
        "router:N",
        scale=alt.Scale(domain=routers, range=[_DASHES.get(r, [1, 0]) for r in routers]),
        legend=None,
    )
    band = (
        alt.Chart()
        .transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_area(opacity=0.13, aria=False)
        .encode(x=span, y=low, y2="high:Q", color=colour)
    )
    line = (
        alt.Chart()
        .mark_line(strokeWidth=2, aria=False)
        .encode(x=span, y=up, color=colour, strokeDash=dash, order="point:Q", detail="router:N")
    )
    dots = (
        alt.Chart()
        .mark_point(filled=True, size=26, opacity=0.9)
        .encode(x=span, y=up, color=colour, description="says:N")
    )
    chart = alt.layer(band, line, dots)
    return draw(chart.properties(width=560, height=360), rows, name=name, title=title, look=look)
