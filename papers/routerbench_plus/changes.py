"""What a change does to routers: duplicates gone, specialists in, a domain left out of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.studies.router_table import REFERENCE
from routeyard.pipelines.studies.study import StudyCell

LEARNED = ("knn", "kmeans", "mf", "mlp")


def _values(context: StudyContext, metric: str) -> Mapping[str, tuple[float | None, ...]]:
    rows = context.evaluation(LEARNED).metrics.to_pylist()
    return {r["router"]: (r["value"], r["low"], r["high"]) for r in rows if r["metric"] == metric}


def before_and_after(context: StudyContext) -> Sequence[StudyCell]:
    """The same test questions; after: of each group of duplicates one train question."""
    core, scheme = context.core, context.default_scheme()
    split = core.splits[scheme].copy()
    first = np.zeros(core.n_queries, dtype=bool)
    first[np.unique(core.groups, return_index=True)[1]] = True
    split[(split == "train") & ~first] = ""
    reduced = replace(context, _evaluations={})
    reduced.__dict__["core"] = replace(core, splits={**core.splits, scheme: split})
    cells = []
    for heading, one in (("original", context), ("reduced", reduced)):
        for name, (value, low, high) in _values(one, "accuracy").items():
            if name in LEARNED:
                cells.append(StudyCell(name, f"accuracy, {heading}", value, "percent", low, high))
    return cells


def agreement(context: StudyContext) -> Sequence[StudyCell]:
    """Agreement with the best generalist, with the pseudo-specialists and without."""
    models = context.tables["models"]
    real = models.filter(pc.equal(models.column("kind"), "real")).column("model_id").to_pylist()
    without = replace(context, _evaluations={})
    without.__dict__["core"] = context.core.with_models(tuple(sorted(real)))
    before = _values(without, "agreement_with_generalist")
    after = _values(context, "agreement_with_generalist")
    cells = []
    for name in LEARNED:
        one, other = before.get(name, (None,))[0], after.get(name, (None,))[0]
        cells += [
            StudyCell(name, "without specialists", one, "percent"),
            StudyCell(name, "with specialists", other, "percent"),
            StudyCell(name, "change", None if None in (one, other) else other - one, "points"),  # type: ignore[operator]
        ]
    return cells


def ood(context: StudyContext) -> Sequence[StudyCell]:
    done = context.evaluation(REFERENCE, ood=True)
    rows = [] if done.ood is None else done.ood.to_pylist()
    return [
        StudyCell(r["group"], r["router"], r["change"], "points", r["low"], r["high"]) for r in rows
    ]
