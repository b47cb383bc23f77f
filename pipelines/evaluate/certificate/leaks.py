"""Test questions that also stand in train: word for word, or as near-duplicates."""

from __future__ import annotations

import numpy as np

from pipelines.evaluate.core import Core
from schemas.leaks import same_words


def leaks(core: Core, scheme: str) -> dict[str, int | None]:
    """Numbers of test questions of a scheme, and of those that stand in train as well.

    `verbatim`: with the same words as a train question, whatever the case and
    the space between them. `near_duplicates`: in a group of near-duplicates
    with a train question, as the release's `duplicates` has it; null when nobody
    looked for any.
    """
    split = core.splits[scheme]
    test, train = np.flatnonzero(split == "test"), np.flatnonzero(split == "train")
    known = {same_words(core.prompts[i]) for i in train} if core.prompts else set()
    verbatim = sum(same_words(core.prompts[i]) in known for i in test) if core.prompts else 0
    near = None
    if core.duplicates_known:
        near = int(np.isin(core.groups[test], core.groups[train]).sum())
    return {"test": len(test), "verbatim": verbatim, "near_duplicates": near}
