"""Routers that read a model's own states and signals, trained on one release or a mix of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.evaluate.run import Evaluation
from pipelines.routers import ROUTERS
from pipelines.routers.base import Floats, Router
from pipelines.studies.context import Maker, StudyContext
from pipelines.studies.router_table import Columns, cells_of
from pipelines.studies.study import Study, StudyCell, Unit

PAPER = "triple-perspective"
#: The rows of Tables 1 and 2.
ROWS = (
    "self-ask", "semantic-entropy", "margin", "entropy", "max-logit", "embedding-mlp",
    "probe-dirichlet",
)  # fmt: skip
#: The rows of Table 3, with learned weights and the input-conditional form of the text.
GLOBAL, OF_INPUT = "Dirichlet (Algorithm 1)", "Dirichlet of the input (section 4)"
PROBES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "final layer": ("probe-final", {}),
    "mean": ("probe-mean", {}),
    "softmax": ("probe-softmax", {}),
    GLOBAL: ("probe-dirichlet", {}),
    OF_INPUT: ("probe-dirichlet", {"conditional": True}),
}
OWN = ("labels", "splits", "pair", "hidden_states")
MIX = "Columns marked OOD are releases named with --test-on; the others were trained on."
AUROC: Columns = {"auroc": ("AUROC", "percent")}


def _made(name: str, setting: Mapping[str, Any], seed: int) -> Router:
    router: Router = ROUTERS.get(name)(seed=seed, **setting)
    return router


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


def _ability(context: StudyContext, columns: Columns) -> Sequence[StudyCell]:
    names = context.able(ROWS)
    makers = {name: context.make(name) for name in names}
    done = _across(context, makers, context.domains)
    return _spread(context, done, columns, names)


ABILITY = Study(
    name="router_ability",
    paper=PAPER,
    item="Table 1",
    title="Router ability (AUROC) of signals, embeddings and hidden states",
    cells=partial(_ability, columns=AUROC),
    needs=("labels", "splits", "pair"),
    rows="router",
    notes=(MIX, "Rows are those the releases can feed: signals, embeddings, hidden states."),
)

_SCENARIOS: Columns = {
    "lpm": ("LPM", "percent"),
    "mpm": ("MPM", "percent"),
    "hcr": ("HCR", "percent"),
    "lpm_as_published": ("LPM as coded", "percent"),
    "hcr_as_published": ("HCR as coded", "percent"),
}

ALIGNMENT = Study(
    name="router_alignment",
    paper=PAPER,
    item="Table 2",
    title="Alignment with three scenarios (LPM, MPM, HCR)",
    cells=partial(_ability, columns=_SCENARIOS),
    needs=("labels", "splits", "pair"),
    rows="router",
    notes=(MIX, "Bands as in section 5.2: call rates to 25 and 30 %, 85 to 95 % of the gain."),
)


def _aggregation(context: StudyContext) -> Sequence[StudyCell]:
    makers = {label: partial(_made, *which) for label, which in PROBES.items()}
    done = _across(context, makers, context.domains)
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


AGGREGATION = Study(
    name="probe_aggregation",
    paper=PAPER,
    item="Table 3",
    title="How layers are put together: last, mean, learned, Dirichlet, Dirichlet of the input",
    cells=_aggregation,
    needs=OWN,
    rows="probe",
    plot="heat",
    notes=(
        MIX,
        "The last row is what weights that follow the question are worth, paired, in points.",
    ),
)


def _dirichlet() -> Mapping[str, Maker]:
    return {"probe-dirichlet": partial(_made, "probe-dirichlet", {})}


def _scale(context: StudyContext) -> Sequence[StudyCell]:
    groups: dict[str, tuple[str, ...]] = {name: (name,) for name in context.domains}
    if context.joined:
        groups["mixed"] = context.domains
    least = min(len(context.training((name,)).queries) for name in context.domains)
    cells = []
    for share in (0.1, 0.4, 1.0):
        n = max(2, round(share * least))
        for label, on in groups.items():
            done = _across(context, _dirichlet(), on, n)
            own = {name: done[name] for name in on}
            for name, one in own.items():
                heading = name if label == name else f"mixed, on {name}"
                named: Columns = {"auroc": (heading, "percent")}
                cells += [
                    StudyCell(
                        f"{n:,} of each", c.column, c.value, c.unit, c.low, c.high, note=c.note
                    )
                    for c in cells_of(one, named, ["probe-dirichlet"])
                ]
    return cells


SCALE = Study(
    name="probe_scale",
    paper=PAPER,
    item="Table 4",
    title="AUROC of the Dirichlet probe over amounts of training data",
    cells=_scale,
    needs=OWN,
    rows="train questions",
    plot="heat",
    notes=("A tenth, four tenths and all of the smallest train set, as 1K, 4K and 10K are.",),
)


def _mixture(context: StudyContext) -> Sequence[StudyCell]:
    cells = []
    for k in range(1, len(context.domains) + 1):
        on = context.domains[:k]
        done = _across(context, _dirichlet(), on)
        for release, one in done.items():
            where = release if release in context.domains else f"{release} (OOD)"
            named: Columns = {"auroc": (" + ".join(on), "percent")}
            cells += [
                StudyCell(where, c.column, c.value, c.unit, c.low, c.high, note=c.note)
                for c in cells_of(one, named, ["probe-dirichlet"])
            ]
    return cells


MIXTURE = Study(
    name="probe_mixture",
    paper=PAPER,
    item="Table 5",
    title="AUROC of the Dirichlet probe over mixtures of training data",
    cells=_mixture,
    needs=(*OWN, "releases"),
    rows="tested on",
    plot="heat",
    notes=("Columns are what was trained on, in the order in which the releases were named.",),
)


def _width(context: StudyContext) -> Sequence[StudyCell]:
    makers = {
        ("linear" if not width else f"{width} neurons"): partial(
            _made, "probe-mean", {"width": width}
        )
        for width in (0, 64, 256, 1024)
    }
    return _spread(context, _across(context, makers, context.domains), AUROC, list(makers))


WIDTH = Study(
    name="probe_width",
    paper=PAPER,
    item="Figure 3",
    title="A hidden layer behind the mean probe, by its width",
    cells=_width,
    needs=OWN,
    rows="head",
    plot="heat",
    notes=("The paper also draws the losses of training and validation.",),
)


def _weights(context: StudyContext) -> dict[str, Floats]:
    """Release, or `mixed` → (L,) mean weights of the layers."""
    groups: dict[str, tuple[str, ...]] = {name: (name,) for name in context.domains}
    if context.joined:
        groups["mixed"] = context.domains
    found = {}
    for label, on in groups.items():
        train = context.training(on)
        router: Any = _made("probe-dirichlet", {}, context.seed)
        found[label] = router.fit(train).layer_weights(train.queries).mean(axis=0)
    return found


def _layers(context: StudyContext) -> Sequence[StudyCell]:
    unit: Unit = "percent"
    return [
        StudyCell(f"layer {k}", label, float(value), unit)
        for label, weights in context.once("layers", lambda: _weights(context)).items()
        for k, value in enumerate(weights)
    ]


def _layer_curves(context: StudyContext) -> pa.Table:
    schema = pa.schema([("series", pa.string()), *((n, pa.float64()) for n in "xy"),
                        ("low", pa.float64()), ("high", pa.float64())])  # fmt: skip
    rows = [
        {"series": label, "x": float(k), "y": float(value), "low": None, "high": None}
        for label, weights in context.once("layers", lambda: _weights(context)).items()
        for k, value in enumerate(weights)
    ]
    return pa.Table.from_pylist(rows, schema=schema)


LAYERS = Study(
    name="probe_layers",
    paper=PAPER,
    item="Figure 6",
    title="Weight of every layer in the Dirichlet probe, by what it was trained on",
    cells=_layers,
    needs=OWN,
    rows="layer",
    plot="lines",
    curves=_layer_curves,
    axes=("layer", "weight"),
    notes=("Layer 0 is the embedding layer. One fit each: no interval.",),
)
