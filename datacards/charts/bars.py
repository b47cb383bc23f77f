"""Bars by name, with intervals and printed values; stacked shares; histograms."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from routeyard.datacards.charts.colours import colours, fill
from routeyard.datacards.charts.draw import PAPER, Look, draw
from routeyard.datacards.charts.vega import (
    alone,
    field,
    layered,
    mark,
    properties,
    until,
)
from routeyard.datacards.charts.words import name_axis, name_legend

_BLUE, _ORANGE = "#0a7bc2", "#d0570a"
#: Different shares up to which each has its own bar.
_FEW = 31
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
    if not 1 < len(known) <= _FEW:
        return []
    nearest = min(b - a for a, b in itertools.pairwise(known))
    if nearest < 1 / _FEW:
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
