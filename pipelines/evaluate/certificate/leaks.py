"""Test questions that also stand in train: word for word, or as near-duplicates."""

from __future__ import annotations

import hashlib

import numpy as np

from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.texts import some
from routeyard.schemas.leaks import same_words


def leaks(core: Core, scheme: str) -> dict[str, int | None]:
    """Numbers of test questions of a scheme, and of those that stand in train as well.

    `verbatim`: with the same words as a train question, whatever the case and
    the space between them. `near_duplicates`: in a group of near-duplicates
    with a train question, as the release's `duplicates` has it; null when nobody
    looked for any.
    """
    split = core.splits[scheme]
    test, train = np.flatnonzero(split == "test"), np.flatnonzero(split == "train")
    known = {_mark(text) for text in some(core.prompts, train)}
    verbatim = sum(_mark(text) in known for text in some(core.prompts, test))
    near = None
    if core.duplicates_known:
        near = int(np.isin(core.groups[test], core.groups[train]).sum())
    return {"test": len(test), "verbatim": verbatim, "near_duplicates": near}


def _mark(text: str) -> bytes:
    """16 bytes for a text: the texts of all train questions need not be held."""
    return hashlib.blake2b(same_words(text).encode("utf-8", "replace"), digest_size=16).digest()
