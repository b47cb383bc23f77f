"""Descriptors where a release lacks them: labels on probes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routeyard.papers.reproduction import Stand
from routeyard.pipelines.common.arrays import Vectors
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.studies.study import StudyContext

#: Probes of the paper (appendix D.1).
PROBES = 192
KIND = "right_on_probes"


def with_probes(stand: Stand) -> Stand:
    """The release with descriptors, where it is not the paper's data and lacks them.

    A model's descriptor is its labels on up to 192 validation questions, of unit norm: it has the
    paper's form and none of its meaning.
    """
    context = stand.context
    if not stand.unlike or context.core.descriptors:
        return stand
    made = replace(context, _evaluations={})
    described = {KIND: _labels_on_probes(context.core, context)}
    made.__dict__["core"] = replace(context.core, descriptors=described)
    told = f"{stand.unlike}, with labels on probes for descriptors"
    return replace(stand, context=made, unlike=told)


def _labels_on_probes(core: Core, context: StudyContext) -> Vectors:
    scheme = context.default_scheme()
    held = "validation" if np.any(core.splits[scheme] == "validation") else "train"
    rows = core.rows(scheme, held)
    drawn = np.sort(np.random.default_rng(context.seed).permutation(rows)[:PROBES])
    right = np.nan_to_num(core.labels[drawn]).T + 1e-6
    return np.asarray(right / np.linalg.norm(right, axis=1, keepdims=True), dtype=np.float32)
