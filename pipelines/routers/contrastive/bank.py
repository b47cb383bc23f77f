"""The bank: one descriptor of unit norm per model, and the exact search for the nearest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints, Vectors
from routeyard.pipelines.errors import BadInput

#: Kinds in the order in which a router takes them.
ORDER = ("logit_footprint", "perplexity_fingerprint", "text_footprint")

#: What takes the place of a similarity that was not retrieved: below every one that was,
#: also after λ·cost is taken off.
OUTSIDE = -1e4

HOW = "routeyard fingerprint RELEASE --out descriptors.parquet, then --also descriptors.parquet"


def bank_of(
    descriptors: Mapping[str, Vectors], names: Sequence[str], kind: str | None = None
) -> Vectors:
    """(m, k) unit vectors, one for each model.

    Args:
        descriptors: kind → (m, k); NaN rows for models without one.
        kind: one kind; `mixed` takes for each model the first kind of `ORDER` it has (kinds
            of one length: CSCR, section 3.1.2, sets N = K); None: the first kind that all
            models have, else mixed.

    Raises:
        BadInput: there are no descriptors, or some models have none.
    """
    if not descriptors:
        raise BadInput(
            "this router needs descriptors of the models, and the release has none", next_step=HOW
        )
    kinds = [k for k in ORDER if k in descriptors] + sorted(set(descriptors) - set(ORDER))
    if kind not in (None, "mixed", *kinds):
        raise BadInput(
            f"there are no descriptors of kind {kind!r}",
            next_step=f"known: {', '.join(kinds)}; or {HOW}",
        )
    if kind is None:
        whole = [k for k in kinds if not np.isnan(descriptors[k]).any()]
        kind = whole[0] if whole else "mixed"
    some = kinds if kind == "mixed" else [kind]
    widths = {k: descriptors[k].shape[1] for k in some}
    if len(set(widths.values())) > 1:
        said = ", ".join(f"{k}: {n}" for k, n in widths.items())
        raise BadInput(
            f"descriptors of several kinds share a space only where they are as long ({said})",
            next_step="make as many frequent tokens as probes: --tokens N --probes N",
        )
    found = descriptors[some[0]].copy()
    for other in some[1:]:
        lacks = np.isnan(found[:, 0])
        found[lacks] = descriptors[other][lacks]
    bare = np.flatnonzero(np.isnan(found).any(axis=1))
    if len(bare):
        raise BadInput(
            f"{len(bare)} of {len(names)} models have no descriptor, such as {names[bare[0]]!r}",
            next_step="`--kind perplexity_fingerprint` and `--kind text_footprint` need answers "
            f"only: {HOW}",
        )
    return unit(found)


def unit(vectors: Vectors) -> Vectors:
    """Rows of length 1; a row of zeros stays one."""
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norm > 0, norm, 1), dtype=np.float32)


def nearest_models(queries: Vectors, bank: Vectors, k: int) -> tuple[Ints, Floats]:
    """(n, k) models by falling inner product, and (n, k) the products, by a flat FAISS index.

    The index is exact (IndexFlatIP). Of equals the first in order comes first.

    Raises:
        BadInput: FAISS is not installed.
    """
    try:
        import faiss
    except ImportError as error:
        raise BadInput(
            "this router searches with FAISS", next_step="pip install -c constraints.txt '.[faiss]'"
        ) from error
    index = faiss.IndexFlatIP(bank.shape[1])
    index.add(np.ascontiguousarray(bank))
    near, at = index.search(np.ascontiguousarray(queries), min(k, len(bank)))
    order = np.lexsort((at, -near), axis=1)
    at, near = (np.take_along_axis(one, order, axis=1) for one in (at, near))
    return at.astype(np.int64), near.astype(np.float64)
