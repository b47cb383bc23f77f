"""What a study reads of a release, and what a reader has to know of that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routeyard.pipelines.evaluate.run.sub_pool import priced_in
from routeyard.pipelines.matrix.core import first_measure
from routeyard.pipelines.matrix.leaked import leaked
from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.studies.study import Study


def known_costs(context: StudyContext) -> tuple[StudyContext, str]:
    """The release with the models whose cost is known, and which these are.

    The release itself, and no words, where all costs are known, where fewer than two are, and
    where the cost of the pair is not.
    """
    core = context.core
    measure = first_measure(core.part_costs)
    if core.costs or measure is None:
        return context, ""
    models = tuple(name for name in core.model_ids if name not in core.lacking[measure])
    if len(models) < 2 or set(context.pair or ()) - set(models):
        return context, ""

    def made() -> StudyContext:
        found = replace(context, _evaluations={})
        found.__dict__["core"] = priced_in(core, measure, models)
        return found

    said = f"the {len(models)} of {core.n_models} models whose {measure} are known"
    return context.once("known costs", made), said


def fed(study: Study, context: StudyContext) -> tuple[StudyContext, str]:
    """What a study reads: of one about costs only the models whose cost is known, and then which.

    Unknown is not free, and one model without a cost does not take the others' away.
    """
    return known_costs(context) if "cost" in study.needs else (context, "")


def leaks(study: Study, context: StudyContext) -> str:
    """How many test questions of the release are also in train; empty where none is."""
    if "splits" not in study.needs or not context.core.splits:
        return ""
    core, scheme = context.core, context.default_scheme()
    rows = core.rows(scheme, "test")
    n = context.once("leaked", lambda: int(np.sum(leaked(core, scheme, rows))))
    return (
        f"{n:,} of {len(rows):,} test questions are also in train, in the same words or nearly; "
        "figures are over all of them."
        if n
        else ""
    )
