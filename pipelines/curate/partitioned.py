"""Near-duplicate pairs of more vectors than one machine holds, exact across borders.

Rows are cut into slabs along one direction u (the leading principal component).
‖a − b‖ ≥ |u·a − u·b| for unit u, so two vectors with cosine ≥ δ lie within
r = √(2 − 2δ) of each other along u: a slab that also holds the rows up to r
beyond its upper cut sees every pair whose lower member is its own. Each slab is
searched on its own; the union over slabs is what one search over all gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.curate.near_duplicates import PAD, Pairs, components, near_duplicate_pairs
from pipelines.errors import BadInput

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Slabs:
    """Where the rows are cut.

    Attributes:
        direction: (d,) unit vector.
        cuts: (p − 1,) ascending positions between the p slabs.
        reach: How far beyond its upper cut a slab looks, padding included.
    """

    direction: NDArray[np.float64]
    cuts: NDArray[np.float64]
    reach: float

    def __len__(self) -> int:
        return len(self.cuts) + 1

    def positions(self, vectors: Floats) -> NDArray[np.float64]:
        """(n,) u·v / ‖v‖ in float64."""
        wide = vectors.astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        if not (norms > 0).all() or not np.isfinite(norms).all():
            raise BadInput(
                "some vectors are zero or not finite", next_step="embed these texts again"
            )
        positions: NDArray[np.float64] = (wide @ self.direction) / norms
        return positions

    def members(self, positions: NDArray[np.float64], slab: int) -> NDArray[np.bool_]:
        """(n,) whether a row belongs to slab number `slab` or to the border it looks into."""
        low = self.cuts[slab - 1] if slab else -np.inf
        high = self.cuts[slab] + self.reach if slab < len(self.cuts) else np.inf
        inside: NDArray[np.bool_] = (positions >= low) & (positions <= high)
        return inside


@dataclass(frozen=True, slots=True)
class SlabPairs:
    """What one slab found, in row numbers of the whole set.

    Attributes:
        copies: (c, 2) rows that hold the same bytes, the smaller first.
        left: (p,) and `right`: (p,) near-duplicate rows.
        similarity: (p,) cosine in float64.
    """

    copies: Indices
    left: Indices
    right: Indices
    similarity: NDArray[np.float64]


def plan_slabs(sample: Floats, threshold: float, count: int) -> Slabs:
    """Cut points that give slabs of about equal size.

    Args:
        sample: (m, d) rows drawn from all shards; any sample is exact, a fair one is fast.
        threshold: δ in (0, 1].
        count: Slabs wanted; fewer come back when cuts would coincide.
    """
    from scipy.linalg import eigh

    unit = sample.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    centred = unit - unit.mean(axis=0)
    width = unit.shape[1]
    direction = eigh(centred.T @ centred, subset_by_index=[width - 1, width - 1])[1][:, 0]
    shares = np.linspace(0, 1, count + 1)[1:-1]
    cuts = np.unique(np.quantile(unit @ direction, shares)) if count > 1 else np.empty(0)
    reach = float(np.sqrt(max(0.0, 2 - 2 * threshold))) + PAD
    return Slabs(direction, cuts, reach)


def search_slab(rows: Indices, vectors: Floats, threshold: float) -> SlabPairs:
    """All near-duplicates among the members of one slab.

    Args:
        rows: (m,) row numbers in the whole set, ascending.
        vectors: (m, d) their vectors.
    """
    found = near_duplicate_pairs(vectors, threshold)
    again = np.flatnonzero(found.first != np.arange(len(rows)))
    copies = np.stack([rows[found.first[again]], rows[again]], axis=1)
    return SlabPairs(copies, rows[found.left], rows[found.right], found.similarity)


def join_slabs(n: int, parts: Sequence[SlabPairs]) -> Pairs:
    """Pairs over all n rows, equal to one search over all of them.

    Pairs in a border are found by two slabs and kept once.
    """
    copies = np.concatenate([p.copies for p in parts]) if parts else np.empty((0, 2), np.int64)
    label = components(n, copies[:, 0], copies[:, 1])
    # The smallest row of each component stands for all copies of a vector.
    smallest = np.full(int(label.max(initial=-1)) + 1, n, dtype=np.int64)
    np.minimum.at(smallest, label, np.arange(n))
    first = smallest[label]
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return Pairs(first, none, none, np.empty(0))
    a = first[np.concatenate([part.left for part in parts])]
    b = first[np.concatenate([part.right for part in parts])]
    similarity = np.concatenate([part.similarity for part in parts])
    left, right = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((right, left))
    left, right, similarity = left[order], right[order], similarity[order]
    new = np.ones(len(left), dtype=bool)
    new[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    return Pairs(first, left[new], right[new], similarity[new])
