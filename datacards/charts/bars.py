"""Bars by name, stacked shares and histograms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from datacards.charts.colours import colours
from datacards.charts.draw import PAPER, Look, draw
from datacards.charts.models import short


def bars(
    values: Sequence[tuple[str, float]],
    *,
    name: str,
    title: str,
    of: str,
    value: str,
    form: str = ".2f",
    look: Look = PAPER,
) -> str:
    """Horizontal bars in the given order; `of` names the bars, `value` what they measure."""
    import altair as alt

    rows = [{"k": k, "v": v, "says": f"{label}: {v:{form}}"} for k, (label, v) in enumerate(values)]
    names = json.dumps([short(label) for label, _ in values])
    axis = alt.Axis(labelExpr=f"{names}[datum.value]", labelOverlap=False, grid=False, ticks=False)
    chart = (
        alt.Chart()
        .mark_bar(color="#0a7bc2")
        .encode(
            x=alt.X("v:Q", title=value),
            y=alt.Y("k:O", title=of, axis=axis),
            description="says:N",
        )
        .properties(width=440, height=alt.Step(19))
    )
    return draw(chart, rows, name=name, title=title, look=look)


def histogram(
    values: Sequence[float], *, name: str, title: str, x: str, y: str, look: Look = PAPER
) -> str:
    """Counts of shares in twenty steps from 0 to 1."""
    import altair as alt

    counts = [0] * 20
    for value in values:
        counts[min(19, int(value * 20))] += 1
    rows = [
        {"a": k / 20, "b": (k + 1) / 20, "n": n, "says": f"{5 * k} to {5 * k + 5} %: {n:,}"}
        for k, n in enumerate(counts)
    ]
    chart = (
        alt.Chart()
        .mark_bar(color="#0a7bc2")
        .encode(
            x=alt.X("a:Q", title=x, axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            x2="b:Q",
            y=alt.Y("n:Q", title=y),
            description="says:N",
        )
        .properties(width=500, height=220)
    )
    return draw(chart, rows, name=name, title=title, look=look)


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
    import altair as alt

    hue = colours(models)
    routers = list(dict.fromkeys(row["router"] for row in rows))
    asked = sorted({row["model_id"] for row in rows if row["share"] > 0})
    shown = [
        {
            "k": routers.index(row["router"]),
            "model": row["model_id"],
            "v": row["share"],
            "says": f"{row['router']} asks {row['model_id']}: {100 * row['share']:.1f} %",
        }
        for row in rows
        if row["share"] > 0
    ]
    names = json.dumps([short(router) for router in routers])
    axis = alt.Axis(labelExpr=f"{names}[datum.value]", labelOverlap=False, grid=False, ticks=False)
    chart = (
        alt.Chart()
        .mark_bar(stroke="#14181d", strokeWidth=0.5)
        .encode(
            x=alt.X("v:Q", title="share of test questions", axis=alt.Axis(format="%"),
                    scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("k:O", title=of, axis=axis),
            color=alt.Color(
                "model:N",
                scale=alt.Scale(domain=asked, range=[hue[m][0] for m in asked]),
                legend=alt.Legend(title="model", orient="bottom", columns=3),
            ),
            order="model:N",
            description="says:N",
        )
        .properties(width=440, height=alt.Step(22))
    )  # fmt: skip
    return draw(chart, shown, name=name, title=title, look=look)
