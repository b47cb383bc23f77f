"""Descriptors where a release has none: right and wrong on probes, in the place of logits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routeyard.papers.stands import Stand

#: Probes of the paper (appendix D.1).
PROBES = 192
KIND = "right_on_probes"


def with_probes(stand: Stand) -> Stand:
    """The stand with descriptors, where it is not the paper's data and has none.

    A model's descriptor is its labels on up to 192 validation questions, of unit norm: it has the
    paper's form and none of its meaning.
    """
    context = stand.context
    if not stand.unlike or context.core.descriptors:
        return stand
    core, scheme = context.core, context.default_scheme()
    held = "validation" if np.any(core.splits[scheme] == "validation") else "train"
    rows = core.rows(scheme, held)
    drawn = np.sort(np.random.default_rng(context.seed).permutation(rows)[:PROBES])
    right = np.nan_to_num(core.labels[drawn]).T + 1e-6
    vectors = right / np.linalg.norm(right, axis=1, keepdims=True)
    core = replace(core, descriptors={KIND: vectors.astype(np.float32)})
    made = replace(context, _evaluations={})
    made.__dict__["core"] = core
    return replace(
        stand, context=made, unlike=f"{stand.unlike}, with labels on probes for descriptors"
    )
