"""All pairs of near-duplicate vectors: exact, without comparing all pairs.

For unit vectors cos(a, b) ≥ δ means ‖a − b‖ ≤ √(2 − 2δ), and a projection never
lengthens a distance. So a radius query in a few leading principal components
finds every candidate; each candidate is then decided in float64. The result is
what a brute force over all n(n−1)/2 pairs gives, at any n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints, Vectors
from routeyard.pipelines.curate.dedup.close_pairs import close_pairs
from routeyard.pipelines.curate.dedup.crowds import Crowds, Joined
from routeyard.pipelines.errors import BadInput
from routeyard.schemas.near import SIMILARITY

#: Leading principal components in which candidates are sought.
COMPONENTS = 32
#: Added to projected radii: float32 projections are off by up to about 1e-6.
PAD = 1e-5
#: Rows from which the principal components are computed (any basis is exact).
SAMPLE = 4_096
#: Rows, or pairs, that are worked on at a time.
BLOCK = 4_096
#: Candidate pairs decided at a time.
CANDIDATES = 65_536


@dataclass(frozen=True, slots=True)
class Pairs:
    """Near-duplicate pairs among distinct vectors, and which rows are copies.

    Attributes:
        first: (n,) for each row the first row that holds the same bytes.
        left: (p,) rows, each the first of its copies.
        right: (p,) rows, `left < right`, in lexicographic order.
        similarity: (p,) cosine in float64.
        joined: Pairs that are counted and not listed, and what they join.
    """

    first: Ints
    left: Ints
    right: Ints
    similarity: Floats
    joined: Joined = field(default_factory=Joined)

    def count(self) -> int:
        """Pairs of rows at or above the threshold, copies of a vector included."""
        copies = np.bincount(self.first, minlength=len(self.first))
        within = int((copies * (copies - 1) // 2).sum())
        listed = int((copies[self.left] * copies[self.right]).sum())
        return within + listed + self.joined.pairs


def near_duplicate_pairs(vectors: Vectors, threshold: float, alike: Bools | None = None) -> Pairs:
    """Every pair of rows with cosine ≥ `threshold`, identical to a float64 brute force.

    Memory beyond `vectors` grows with n × about 80 numbers and with the pairs found;
    rows are read in blocks, so `vectors` may be a memory map larger than RAM.

    Args:
        vectors: (n, d) float32, any norm above zero.
        threshold: δ in (0, 1].
        alike: (n,) rows of which only the components matter: where they crowd, their pairs
            are counted and joined instead of listed, and memory no longer grows with them.

    Raises:
        BadInput: a vector is zero or not finite, or δ is outside (0, 1].
    """
    if not 0 < threshold <= 1:
        raise BadInput(
            f"the cosine threshold must lie in (0, 1]; got {threshold}",
            next_step=f"near-duplicates are usually sought at {SIMILARITY}",
        )
    norms = row_norms(vectors)
    bad = np.flatnonzero(~(norms > 0) | ~np.isfinite(norms))
    if len(bad):
        raise BadInput(
            f"{len(bad)} vector(s) are zero or not finite",
            where=f"rows {bad[:3].tolist()}",
            next_step="embed these texts again",
        )
    first = _first_copies(vectors)
    distinct = np.flatnonzero(first == np.arange(len(first)))
    projected = _project(vectors, norms, distinct)
    radius = float(np.sqrt(max(0.0, 2 - 2 * threshold))) + PAD
    found: list[tuple[Ints, Ints, Floats]] = []
    crowds = Crowds(vectors, norms, threshold, PAD, distinct, _weights(first, alike)[distinct])
    for a, b in _blocks(close_pairs(projected, radius, crowds)):
        left, right = distinct[a], distinct[b]
        # float32 only rejects, with room for its rounding; float64 decides.
        near = _dots(vectors, left, right) >= (threshold - PAD) * norms[left] * norms[right]
        left, right = left[near], right[near]
        cosine = cosines(vectors, norms, left, right)
        sure = cosine >= threshold
        found.append((left[sure], right[sure], cosine[sure]))
    if not found:
        none = np.empty(0, dtype=np.int64)
        return Pairs(first, none, none, np.empty(0), crowds.joined())
    left, right, cosine = (np.concatenate(parts) for parts in zip(*found, strict=True))
    left, right = np.minimum(left, right), np.maximum(left, right)
    order = np.lexsort((right, left))
    return Pairs(first, left[order], right[order], cosine[order], crowds.joined())


def _weights(first: Ints, alike: Bools | None) -> Ints:
    """(n,) rows that each row represents, where it and its copies are all alike; 0 elsewhere."""
    if alike is None:
        return np.zeros(len(first), dtype=np.int64)
    copies = np.bincount(first, minlength=len(first))
    return np.where(np.bincount(first[alike], minlength=len(first)) == copies, copies, 0)


def row_norms(vectors: Vectors) -> Floats:
    """(n,) Euclidean norms, summed in float64."""
    norms = np.empty(len(vectors))
    for start in range(0, len(vectors), BLOCK):
        block = np.asarray(vectors[start : start + BLOCK])
        norms[start : start + len(block)] = np.einsum("ij,ij->i", block, block, dtype=np.float64)
    return np.sqrt(norms)


def cosines(vectors: Vectors, norms: Floats, left: Ints, right: Ints) -> Floats:
    """(p,) cosines of row pairs, in float64."""
    out = np.empty(len(left))
    for start in range(0, len(left), BLOCK):
        part = slice(start, start + BLOCK)
        a, b = left[part], right[part]
        dots = np.einsum("ij,ij->i", vectors[a], vectors[b], dtype=np.float64)
        out[part] = dots / (norms[a] * norms[b])
    return out


def _dots(vectors: Vectors, left: Ints, right: Ints) -> Vectors:
    """(p,) dot products of row pairs, in float32."""
    out = np.empty(len(left), dtype=np.float32)
    for start in range(0, len(left), BLOCK // 8):
        part = slice(start, start + BLOCK // 8)
        out[part] = np.einsum("ij,ij->i", vectors[left[part]], vectors[right[part]])
    return out


def components(n: int, left: Ints, right: Ints) -> Ints:
    """(n,) label of each row's connected component, numbered by first row."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    return np.asarray(labels, dtype=np.int64)


def _first_copies(vectors: Vectors) -> Ints:
    """(n,) first row with the same bytes: a hash proposes, a comparison decides."""
    n, width = vectors.shape
    words = width + width % 2
    weights = np.random.default_rng(0).integers(1, 2**63, words // 2, dtype=np.uint64)
    hashes = np.empty(n, dtype=np.uint64)
    for start in range(0, n, BLOCK):
        block = np.zeros((min(BLOCK, n - start), words), dtype=np.float32)
        block[:, :width] = vectors[start : start + BLOCK]
        bits = block.view(np.uint64)
        # The high half of a product depends on all bits below it; the low half
        # does not, so it is mixed in before the sum.
        hashes[start : start + BLOCK] = ((bits ^ (bits >> np.uint64(29))) * weights).sum(axis=1)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    begins = np.r_[True, ordered[1:] != ordered[:-1]] if n else np.empty(0, dtype=bool)
    heads = order[np.maximum.accumulate(np.where(begins, np.arange(n), 0))]
    first = np.arange(n, dtype=np.int64)
    rows, proposed = order[~begins], heads[~begins]
    for start in range(0, len(rows), BLOCK):
        a, b = rows[start : start + BLOCK], proposed[start : start + BLOCK]
        same = (vectors[a].view(np.uint32) == vectors[b].view(np.uint32)).all(axis=1)
        # Rows that only share a hash stay apart and are compared as a pair.
        first[a[same]] = b[same]
    return first


def _project(vectors: Vectors, norms: Floats, rows: Ints) -> Vectors:
    """(m, k) unit rows in their leading principal components, largest variance first."""
    from scipy.linalg import eigh

    n, width = len(rows), vectors.shape[1]
    k = min(COMPONENTS, width)
    step = max(1, -(-n // SAMPLE))
    sample = vectors[rows[::step]]
    sample /= norms[rows[::step], None].astype(np.float32)
    if len(sample):
        sample -= sample.mean(axis=0)
    spread = (sample.T @ sample).astype(np.float64)
    basis = eigh(spread, subset_by_index=[width - k, width - 1])[1][:, ::-1].astype(np.float32)
    out = np.empty((n, k), dtype=np.float32)
    for start in range(0, n, BLOCK):
        part = rows[start : start + BLOCK]
        out[start : start + BLOCK] = (vectors[part] @ basis) / norms[part, None].astype(np.float32)
    return out


def _blocks(found: Iterator[tuple[Ints, Ints]]) -> Iterator[tuple[Ints, Ints]]:
    """The same pairs, in blocks of about `CANDIDATES`."""
    held: list[tuple[Ints, Ints]] = []
    size = 0
    for pairs in found:
        held.append(pairs)
        size += len(pairs[0])
        if size >= CANDIDATES:
            yield _joined(held)
            held, size = [], 0
    if held:
        yield _joined(held)


def _joined(held: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    left, right = zip(*held, strict=True)
    return np.concatenate(left), np.concatenate(right)
