"""Routers that read a model's own states and signals, trained on one release or a mix of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import Bools, Floats
from routeyard.pipelines.evaluate.fit import fit
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.studies.items import Columns, cells_of
from routeyard.pipelines.evaluate.studies.study import Maker, StudyCell, StudyContext, made, who
from routeyard.schemas.contracts import RESULTS

#: Rows of Table 4: 1K, 4K and 10K questions of each set, as shares of the smallest.
SCALES = {"low": 0.1, "middle": 0.4, "high": 1.0}
#: The rows of Tables 1 and 2.
ROWS = (
    "self-ask", "semantic-entropy", "margin", "entropy", "max-logit", "embedding-mlp",
    "probe-dirichlet",
)  # fmt: skip
#: The rows of Table 3, with learned weights and the input-conditional form of the text.
GLOBAL, OF_INPUT = "Dirichlet (Algorithm 1)", "Dirichlet of the input (section 4)"
PROBES: Mapping[str, Maker] = {
    "final layer": made("probe-final"),
    "mean": made("probe-mean"),
    "softmax": made("probe-softmax"),
    GLOBAL: made("probe-dirichlet"),
    OF_INPUT: made("probe-dirichlet", conditional=True),
}
#: Areas of MMLU-Pro (Table 1) → its categories; the paper does not list them.
AREAS: Mapping[str, Sequence[str]] = {
    "STEM": ("biology", "chemistry", "computer science", "engineering", "math", "physics"),
    "humanities": ("history", "law", "philosophy"),
    "social sciences": ("economics", "psychology"),
    "others": ("business", "health", "other"),
}
_AREAS_OF = "mmlu_pro"
_DIRICHLET = {"probe-dirichlet": PROBES[GLOBAL]}
AUROC: Columns = {"auroc": ("AUROC", "percent")}


def _across(
    context: StudyContext, makers: Mapping[str, Maker], on: Sequence[str], n: int | None = None
) -> Mapping[str, Evaluation]:
    """Release → evaluation; routers trained on these releases together, n questions of each."""
    named = ("mix", who(makers), tuple(on), n)
    return context.once(
        named, lambda: context.across(makers, context.training(on, n), _areas(context))
    )


def _areas(context: StudyContext) -> dict[str, Bools]:
    """`mmlu_pro: STEM` and so on → its questions, where that source is beside others."""
    if _AREAS_OF not in context.cores or context.core.sources is None:
        return {}
    own = context.core.sources == _AREAS_OF
    tasks = np.char.replace(context.core.tasks.astype(np.str_), "_", " ")
    found = {}
    for area, categories in AREAS.items():
        inside = np.any([np.char.endswith(tasks, one) for one in categories], axis=0)
        found[f"{_AREAS_OF}: {area}"] = own & inside
    return found


def _outside(context: StudyContext, done: Mapping[str, Evaluation]) -> list[str]:
    """Releases and areas that no router was trained on; MMLU-Pro's areas replace it."""
    areas = any(name.startswith(f"{_AREAS_OF}: ") for name in done)
    out = [name for name in done if name not in context.domains]
    return [name for name in out if not areas or name != _AREAS_OF]


def _called(context: StudyContext, name: str) -> str:
    """How a column names a release; what no router was trained on is marked, but for sources."""
    beside = context.release in context.cores
    return f"{name} (OOD)" if beside and name not in context.domains else name


def _spread(
    context: StudyContext, done: Mapping[str, Evaluation], columns: Columns, rows: Sequence[str]
) -> list[StudyCell]:
    """Cells of every release, and means over those trained on and those not."""
    cells = []
    for release, one in done.items():
        where = _called(context, release)
        named: Columns = {m: (f"{where}: {h}", unit) for m, (h, unit) in columns.items()}
        cells += cells_of(one, named, rows)
    inside = [name for name in context.domains if name in done]
    for called, group in (("in domain", inside), ("out of domain", _outside(context, done))):
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
        where = _called(context, release)
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
    return {**groups, "mixed": context.domains} if len(groups) > 1 else groups


def scale(context: StudyContext) -> Sequence[StudyCell]:
    groups = _groups(context)
    least = min(len(context.training((name,)).queries) for name in context.domains)
    cells = []
    for called, share in SCALES.items():
        n = max(2, round(share * least))
        cells.append(StudyCell(called, "train questions of each", float(n), "count"))
        for label, on in groups.items():
            done = _across(context, _DIRICHLET, on, n)
            own = [name for name in on if name in done]
            for name in own:
                heading = name if label == name else f"mixed, on {name}"
                named: Columns = {"auroc": (heading, "percent")}
                found = cells_of(done[name], named, list(_DIRICHLET))
                cells += [replace(cell, row=called) for cell in found]
            if len(own) > 1:
                mean = _means(done, own, "", AUROC, list(_DIRICHLET))
                cells += [replace(cell, row=called, column="mixed") for cell in mean]
    return cells


def mixture(context: StudyContext) -> Sequence[StudyCell]:
    cells = []
    for k in range(1, len(context.domains) + 1):
        on = context.domains[:k]
        done = _across(context, _DIRICHLET, on)
        for release, one in done.items():
            where = _called(context, release)
            named: Columns = {"auroc": (" + ".join(on), "percent")}
            cells += [replace(cell, row=where) for cell in cells_of(one, named, list(_DIRICHLET))]
    return cells


def width(context: StudyContext) -> Sequence[StudyCell]:
    makers = {
        ("linear" if not width else f"{width} neurons"): made("probe-mean", width=width)
        for width in (0, 64, 256, 1024)
    }
    return _spread(context, _across(context, makers, context.domains), AUROC, list(makers))


def _weights(context: StudyContext) -> dict[str, Floats]:
    """Release, or `mixed` → (L,) mean weights of the layers."""
    groups = _groups(context)
    found = {}
    for label, on in groups.items():
        train = context.training(on)
        router: Any = fit(PROBES[GLOBAL](context.seed), train)
        found[label] = router.layer_weights(train.queries).mean(axis=0)
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
