"""Numbers of test questions that also stand in train."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.leaked import near, verbatim


def leaks(core: Core, scheme: str) -> dict[str, int | None]:
    """Numbers of test questions of a scheme, and of those that stand in train as well.

    `verbatim`: with the same words as a train question. `near_duplicates`: in a group of
    near-duplicates with one; null when nobody looked for any.
    """
    split = core.splits[scheme]
    test, train = np.flatnonzero(split == "test"), np.flatnonzero(split == "train")
    alike = near(core, test, train)
    return {
        "test": len(test),
        "verbatim": int(verbatim(core, test, train).sum()) if len(core.prompts) else 0,
        "near_duplicates": None if alike is None else int(alike.sum()),
    }
