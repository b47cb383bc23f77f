"""Tables over encoders, pairs and configurations, from the winners of a zoo that was run.

Without a zoo the release's own embeddings are the one encoder, and the reference routers have
their default setting and one fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.studies.items import REFERENCE, measure_of
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext, Unit

#: Routers of the paper that learn nothing from labels, or look at no question.
BLIND = ("best-generalist", "random")
TOP = "spread of the top five"


def evaluations(context: StudyContext) -> Mapping[str, Evaluation]:
    """Encoder → evaluation of the routers with it."""
    if context.zoo is not None:
        return context.once("zoo", context.zoo.by_encoder)
    return {"": context.evaluation(REFERENCE)}


class OverEncoders(NamedTuple):
    """A router's metric over encoders: mean, spread between them, mean ends of intervals."""

    mean: float
    spread: float | None
    low: float | None
    high: float | None


def over_encoders(done: Mapping[str, Evaluation], metric: str) -> dict[str, OverEncoders]:
    """Router → its metric over encoders; routers that no encoder could feed are left out."""
    found: dict[str, list[tuple[float, float | None, float | None]]] = {}
    for one in done.values():
        for row in one.metrics.to_pylist():
            if row["metric"] == metric and row["value"] is not None:
                found.setdefault(row["router"], []).append((row["value"], row["low"], row["high"]))
    out = {}
    for router, values in found.items():
        low, high = (_mean([value[end] for value in values]) for end in (1, 2))
        means = [value for value, _, _ in values]
        spread = float(np.std(means, ddof=1)) if len(means) > 1 else None
        out[router] = OverEncoders(float(np.mean(means)), spread, low, high)
    return out


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def routers_of(context: StudyContext) -> list[str]:
    """Routers that chose, those of the references and the blind ones left out."""
    shown = dict.fromkeys(
        row["router"] for one in evaluations(context).values() for row in one.ranking
    )
    return [name for name in shown if name not in BLIND]


def table(context: StudyContext, metrics: Mapping[str, tuple[str, Unit]]) -> Sequence[StudyCell]:
    """Routers × metrics, mean over encoders; the interval is over test questions."""
    done, routers = evaluations(context), routers_of(context)
    cells = []
    for metric, (heading, unit) in metrics.items():
        found = over_encoders(done, metric.replace("{measure}", measure_of(context)))
        for name in routers:
            one = found.get(name)
            if one is None:
                why = _why_not(done, name, metric.replace("{measure}", measure_of(context)))
                cells.append(StudyCell(name, heading, None, unit, note=why))
                continue
            cells.append(StudyCell(name, heading, one.mean, unit, one.low, one.high))
            spread = "one encoder" if one.spread is None else None
            cells.append(
                StudyCell(name, f"{heading}, sd over encoders", one.spread, unit, note=spread)
            )
        best = sorted((found[name].mean for name in routers if name in found), reverse=True)[:5]
        apart = best[0] - best[-1] if len(best) == 5 else None
        short = None if apart is not None else "fewer than five routers"
        cells.append(StudyCell(TOP, heading, apart, unit, note=short))
    return cells


def _why_not(done: Mapping[str, Evaluation], router: str, metric: str) -> str:
    """Why a metric of a router is not known with any encoder."""
    for one in done.values():
        for row in one.metrics.to_pylist():
            if row["router"] == router and row["metric"] == metric and row["reason"]:
                return str(row["reason"])
    return "not measured"


def exchange_over_pairs(context: StudyContext) -> Sequence[StudyCell]:
    """Range of disagreement over all pairs of routers, and medians of what they exchange."""
    routers, done = set(routers_of(context)), evaluations(context)
    rows = [
        row
        for one in done.values()
        for row in one.exchanges.to_pylist()
        if {row["first"], row["second"]} <= routers
    ]
    if not rows:
        return [StudyCell("all pairs", "disagree from", note="fewer than two routers")]
    apart = [row["disagreement"] for row in rows]
    unsigned = _median(rows, "given_disagreement")
    signed = _median(rows, "signed_given_disagreement")
    found = {
        "disagree from": min(apart),
        "disagree to": max(apart),
        "acc gap": float(np.median([abs(row["signed"]) for row in rows])),
        "|ΔY|": unsigned,
        "|ΔY_signed|": signed,
        "ratio": unsigned / signed if unsigned is not None and signed else None,
    }
    cells = [StudyCell("all pairs", name, value) for name, value in found.items()]
    return [
        *cells,
        StudyCell("all pairs", "pairs", float(len(rows)), "count"),
        *(
            cell
            for row in next(iter(done.values())).exchanges.to_pylist()
            for cell in _of_pair(row)
        ),
    ]


def _of_pair(row: Mapping[str, Any]) -> Sequence[StudyCell]:
    """What one pair of routers exchanges, with the first encoder."""
    name = f"{row['first']} / {row['second']}"
    moved = row["given_disagreement"]
    return [
        StudyCell(name, "disagreement", row["disagreement"], "percent"),
        StudyCell(name, "acc gap", abs(row["signed"])),
        StudyCell(name, "|ΔY|", moved, note=None if moved is not None else "they never disagree"),
        StudyCell(name, "|ΔY_signed|", row["signed_given_disagreement"]),
    ]


def _median(rows: Sequence[Mapping[str, float]], column: str) -> float | None:
    values = [row[column] for row in rows if row[column] is not None]
    return float(np.median(values)) if values else None


def encoder_spread(context: StudyContext) -> Sequence[StudyCell]:
    """Spread of each router's test accuracy over encoders, and the mean of it."""
    found = over_encoders(evaluations(context), "accuracy")
    cells = [
        StudyCell(
            name, "sd over encoders", found[name].spread, "points",
            note="one encoder" if found[name].spread is None else None,
        )
        for name in routers_of(context)
    ]  # fmt: skip
    known = [cell.value for cell in cells if cell.value is not None]
    mean = float(np.mean(known)) if known else None
    return [*cells, StudyCell("mean of routers", "sd over encoders", mean, "points")]
