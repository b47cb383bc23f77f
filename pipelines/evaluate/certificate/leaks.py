"""Numbers of test questions that are also in train."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.leaked import near, verbatim, withheld


def leaks(core: Core, scheme: str) -> dict[str, int | None]:
    """Numbers of test questions of a scheme, and of those that are in train as well.

    `verbatim`: with the same words as a train question; null where texts are withheld.
    `near_duplicates`: in a group of near-duplicates with one; null when nobody looked for any.
    """
    split = core.splits[scheme]
    test, train = np.flatnonzero(split == "test"), np.flatnonzero(split == "train")
    alike = near(core, test, train)
    shared = int(verbatim(core, test, train).sum()) if len(core.prompts) else 0
    return {
        "test": len(test),
        "verbatim": None if withheld(core, np.concatenate([test, train])) else shared,
        "near_duplicates": None if alike is None else int(alike.sum()),
    }
