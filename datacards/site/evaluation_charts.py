"""Charts of an evaluation: accuracy over cost and over the call rate, changes on unseen groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from routeyard.datacards.charts.bars import changes
from routeyard.datacards.charts.lines import Zone, curves
from routeyard.datacards.markdown import texts
from routeyard.datacards.site.evaluation_tables import EvaluationTables

Row = dict[str, Any]

_TEXTS = texts("evaluation.yaml")
#: Cost measure → (what it is called, factor on the stored value).
MEASURES: dict[str, tuple[str, float]] = {k: tuple(v) for k, v in _TEXTS["measures"].items()}
CURVES: dict[str, list[str]] = _TEXTS["curves"]


def unit_of(measure: str, simulated: bool) -> tuple[str, float]:
    """Unit of a cost measure, which says that money is simulated, and factor on its values."""
    unit, factor = MEASURES[measure]
    return f"simulated {unit}" if simulated and measure == "usd" else unit, factor


def over_cost(
    points: Sequence[Row], curve: str, measure: str, *, log: bool, simulated: bool, **how: Any
) -> str:
    """SVG of accuracy over one cost measure; `how` as for `curves`."""
    (title, x), (unit, factor) = CURVES[curve], unit_of(measure, simulated)
    along = f"{x} ({unit}{{}})" if measure == "usd" else f"{unit}{{}}"
    return curves(
        [{**p, "x": factor * p["x"]} for p in points],
        title=f"{title}, {unit}" if measure == "usd" else title.replace("mean cost", unit),
        x=along.format(", log scale" if log else ""),
        y="accuracy",
        log=log,
        **how,
    )


def over_call_rate(points: Sequence[Row], one: EvaluationTables, **how: Any) -> str | None:
    """SVG of accuracy over the share sent to the large of two models; None without such points."""
    own = [p for p in points if p["curve"] == "tradeoff"]
    if not own:
        return None
    zones, straight = bands(one)
    return curves(
        own,
        title="Accuracy over the call rate of the large model",
        x="questions sent to the large model (share)",
        y="accuracy",
        shares=(True, True),
        zones=zones,
        straight=straight,
        **how,
    )


def bands(one: EvaluationTables) -> tuple[list[Zone], tuple[float, float] | None]:
    """Scenarios of a two-model plot, and the accuracies of its ends, where both are known."""
    lpm, mpm, low, high = one.facts.get("bands") or (0.25, 0.30, 0.85, 0.95)
    zones = [Zone("LPM", "x", 0.0, lpm), Zone("MPM, up to HCR", "x", mpm, 1.0)]
    level = {
        row["router"].partition(":")[0]: row["value"]
        for row in one.metrics.to_pylist()
        if row["metric"] == "accuracy" and row["router"].startswith(("small:", "large:"))
    }
    if len(level) < 2 or None in level.values() or level["large"] <= level["small"]:
        return zones, None
    small, gap = level["small"], level["large"] - level["small"]
    return [*zones, Zone("HCR", "y", small + low * gap, small + high * gap)], (
        level["small"],
        level["large"],
    )


def over_groups(rows: Sequence[Row], pool: Sequence[str], **how: Any) -> str:
    """Change of accuracy on groups that training did not see, over the groups."""
    return changes(
        rows,
        title="Change of accuracy on a group not seen in training",
        of="group held out",
        value="change of accuracy (percentage points), 95 % interval",
        routers=pool,
        **how,
    )
