"""Descriptors and costs where a release lacks them: labels on probes, models of known cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routeyard.papers.stands import Stand
from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.evaluate.run.sub_pool import priced_in
from routeyard.pipelines.matrix.core import Core, first_measure
from routeyard.pipelines.studies.context import StudyContext

#: Probes of the paper (appendix D.1).
PROBES = 192
KIND = "right_on_probes"


def with_probes(stand: Stand) -> Stand:
    """The stand with descriptors and costs, where it is not the paper's data and lacks them.

    A model's descriptor is its labels on up to 192 validation questions, of unit norm: it has the
    paper's form and none of its meaning. Where the cost of some models is unknown, the others are
    the pool: nothing of CSCR is without costs.
    """
    context = stand.context
    core, lacked = context.core, []
    measure = first_measure(core.part_costs)
    if stand.unlike and not core.costs and measure is not None:
        known = tuple(name for name in core.model_ids if name not in core.lacking[measure])
        lacked.append(f"the {len(known)} of {core.n_models} models whose {measure} are known")
        core = priced_in(core, measure, known)
    if stand.unlike and not core.descriptors:
        lacked.append("labels on probes for descriptors")
        core = replace(core, descriptors={KIND: _labels_on_probes(core, context)})
    if not lacked:
        return stand
    made = replace(context, _evaluations={})
    made.__dict__["core"] = core
    return replace(stand, context=made, unlike=f"{stand.unlike}, with {' and '.join(lacked)}")


def _labels_on_probes(core: Core, context: StudyContext) -> Vectors:
    scheme = context.default_scheme()
    held = "validation" if np.any(core.splits[scheme] == "validation") else "train"
    rows = core.rows(scheme, held)
    drawn = np.sort(np.random.default_rng(context.seed).permutation(rows)[:PROBES])
    right = np.nan_to_num(core.labels[drawn]).T + 1e-6
    return np.asarray(right / np.linalg.norm(right, axis=1, keepdims=True), dtype=np.float32)
