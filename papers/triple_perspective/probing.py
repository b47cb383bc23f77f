"""Routers that read a model's own states and signals, trained on one release or a mix of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.studies.context import Maker, StudyContext, made
from routeyard.pipelines.studies.router_table import Columns, cells_of
from routeyard.pipelines.studies.study import StudyCell
from routeyard.schemas.tables import RESULTS

#: The rows of Tables 1 and 2.
ROWS = (
    "self-ask", "semantic-entropy", "margin", "entropy", "max-logit", "embedding-mlp",
    "probe-dirichlet",
)  # fmt: skip
#: The rows of Table 3, with learned weights and the input-conditional form of the text.
GLOBAL, OF_INPUT = "Dirichlet (Algorithm 1)", "Dirichlet of the input (section 4)"
PROBES: Mapping[str, Maker] = {
    "final layer": partial(made, router="probe-final"),
    "mean": partial(made, router="probe-mean"),
    "softmax": partial(made, router="probe-softmax"),
    GLOBAL: partial(made, router="probe-dirichlet"),
    OF_INPUT: partial(made, router="probe-dirichlet", conditional=True),
}
_DIRICHLET = {"probe-dirichlet": PROBES[GLOBAL]}
AUROC: Columns = {"auroc": ("AUROC", "percent")}


def _across(
    context: StudyContext, makers: Mapping[str, Maker], on: Sequence[str], n: int | None = None
) -> Mapping[str, Evaluation]:
    """Release → evaluation; routers trained on these releases together, n questions of each."""
    named = ("mix", tuple(makers), tuple(on), n)
    return context.once(named, lambda: context.across(makers, context.training(on, n)))


def _spread(
    context: StudyContext, done: Mapping[str, Evaluation], columns: Columns, rows: Sequence[str]
) -> list[StudyCell]:
    """Cells of every release, and means over those trained on and those not."""
    cells = []
    for release, one in done.items():
        where = release if release in context.domains else f"{release} (OOD)"
        named: Columns = {m: (f"{where}: {h}", unit) for m, (h, unit) in columns.items()}
        cells += cells_of(one, named, rows)
    for called, group in (("in domain", context.domains), ("OOD", tuple(context.tested))):
        if len(group) > 1:
            cells += _means(done, group, called, columns, rows)
    return cells


def _means(
    done: Mapping[str, Evaluation], group: Sequence[str], called: str, columns: Columns,
    rows: Sequence[str],
) -> list[StudyCell]:  # fmt: skip
    cells = []
    for name in rows:
        for metric, (heading, unit) in columns.items():
            found = [
                row["value"]
                for release in group
                for row in done[release].metrics.to_pylist()
                if row["router"] == name and row["metric"] == metric
            ]
            whole = len(found) == len(group) and all(v is not None for v in found)
            value = float(np.mean(found)) if whole else None
            note = None if whole else "not measured on all of them"
            cells.append(StudyCell(name, f"mean {called}: {heading}", value, unit, note=note))
    return cells


def ability(context: StudyContext, columns: Columns) -> Sequence[StudyCell]:
    names = context.able(ROWS)
    makers = {name: context.make(name) for name in names}
    done = _across(context, makers, context.domains)
    return _spread(context, done, columns, names)


def aggregation(context: StudyContext) -> Sequence[StudyCell]:
    done = _across(context, PROBES, context.domains)
    cells = _spread(context, done, AUROC, list(PROBES))
    for release, one in done.items():
        where = release if release in context.domains else f"{release} (OOD)"
        for row in one.comparisons.to_pylist():
            if row["metric"] == "auroc" and {row["first"], row["second"]} == {GLOBAL, OF_INPUT}:
                sign = 1.0 if row["first"] == OF_INPUT else -1.0
                low, high = sorted((sign * row["low"], sign * row["high"]))
                value = sign * row["difference"]
                cells.append(StudyCell("of the input − Algorithm 1", f"{where}: AUROC", value,
                                  "percent", low, high))  # fmt: skip
    return cells


def _groups(context: StudyContext) -> dict[str, tuple[str, ...]]:
    """What is trained on: each release alone and, where there are several, all together."""
    groups: dict[str, tuple[str, ...]] = {name: (name,) for name in context.domains}
    return {**groups, "mixed": context.domains} if context.joined else groups


def scale(context: StudyContext) -> Sequence[StudyCell]:
    groups = _groups(context)
    least = min(len(context.training((name,)).queries) for name in context.domains)
    cells = []
    for share in (0.1, 0.4, 1.0):
        n = max(2, round(share * least))
        for label, on in groups.items():
            done = _across(context, _DIRICHLET, on, n)
            own = {name: done[name] for name in on}
            for name, one in own.items():
                heading = name if label == name else f"mixed, on {name}"
                named: Columns = {"auroc": (heading, "percent")}
                cells += [
                    replace(cell, row=f"{n:,} of each")
                    for cell in cells_of(one, named, list(_DIRICHLET))
                ]
    return cells


def mixture(context: StudyContext) -> Sequence[StudyCell]:
    cells = []
    for k in range(1, len(context.domains) + 1):
        on = context.domains[:k]
        done = _across(context, _DIRICHLET, on)
        for release, one in done.items():
            where = release if release in context.domains else f"{release} (OOD)"
            named: Columns = {"auroc": (" + ".join(on), "percent")}
            cells += [replace(cell, row=where) for cell in cells_of(one, named, list(_DIRICHLET))]
    return cells


def width(context: StudyContext) -> Sequence[StudyCell]:
    makers = {
        ("linear" if not width else f"{width} neurons"): partial(
            made, router="probe-mean", width=width
        )
        for width in (0, 64, 256, 1024)
    }
    return _spread(context, _across(context, makers, context.domains), AUROC, list(makers))


def _weights(context: StudyContext) -> dict[str, Floats]:
    """Release, or `mixed` → (L,) mean weights of the layers."""
    groups = _groups(context)
    found = {}
    for label, on in groups.items():
        train = context.training(on)
        router: Any = PROBES[GLOBAL](context.seed)
        found[label] = router.fit(train).layer_weights(train.queries).mean(axis=0)
    return found


def layers(context: StudyContext) -> Sequence[StudyCell]:
    return [
        StudyCell(f"layer {k}", label, float(value), "percent")
        for label, weights in context.once("layers", lambda: _weights(context)).items()
        for k, value in enumerate(weights)
    ]


def layer_curves(context: StudyContext) -> pa.Table:
    rows = [
        {"series": label, "x": float(k), "y": float(value)}
        for label, weights in context.once("layers", lambda: _weights(context)).items()
        for k, value in enumerate(weights)
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS["study_curves"])
