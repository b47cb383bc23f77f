"""Charts of a pool: accuracy per model, and accuracy over cost with the frontier."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from routeyard.datacards.charts.colours import colours, fill
from routeyard.datacards.charts.draw import LINK, PAPER, Look, draw
from routeyard.datacards.charts.labels import SIDES, Box, place
from routeyard.datacards.charts.vega import Spec, field, layered, mark, properties, until
from routeyard.datacards.charts.words import name_axis, short

Row = Mapping[str, Any]
_WIDTH, _HEIGHT = 560, 380
#: Models up to which each one's interval is drawn in a plot of accuracy over cost.
_FEW = 12


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
            "says": _says(row, look),
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
    hue, width = colours(pool), look.wide(_WIDTH)
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
            (1 - (row["accuracy"] - bottom) / (top - bottom)) * _HEIGHT,
        )
        for row in models
    }
    places = place(
        [(*at[row["model_id"]], short(row["model_id"])) for row in best],
        width,
        _HEIGHT,
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
    chart = layered(layers, width=width, height=_HEIGHT)
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
            "says": _says(row, look),
        }
        for row, where in zip(models, places, strict=True)
    ]


def _spread(row: Row, models: Sequence[Row], look: Look) -> bool:
    """Whether a mark has its interval: each router's, and on pages each model's of few."""
    role = str(row.get("role", "model"))
    if look is PAPER:
        return role == "router"
    few = sum(one.get("role", "model") == "model" for one in models) <= _FEW
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


def _says(row: Row, look: Look) -> str:
    said = f"{row['model_id']}: accuracy {100 * row['accuracy']:.1f} %"
    if row.get("low") is not None:
        said += f" ({100 * row['low']:.1f} to {100 * row['high']:.1f} %)"
    if row.get("cost") is not None:
        said += f", ${row['cost']:.3g} per 1,000 questions"
    if look is not PAPER and row.get("role", "model") == "model":
        said += LINK + urlencode({"a": row["model_id"], "show": "a-wrong"})
    return said
