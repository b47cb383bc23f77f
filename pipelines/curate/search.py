"""All pairs of near-duplicate vectors: exact, without comparing all pairs.

For unit vectors cos(a, b) ≥ δ means ‖a − b‖ ≤ √(2 − 2δ), and a projection never
lengthens a distance. So a radius query in a few leading principal components
finds every candidate; each candidate is then decided in float64. The result is
what a brute force over all n(n−1)/2 pairs gives, at any n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import Array, Bools, Floats, Ints, Vectors
from routeyard.schemas.errors import BadInput
from routeyard.schemas.text import SIMILARITY

# Candidate pairs within a radius: space is halved until all against all is cheap.
#
# Each half keeps its own points (its core) and, of the other side, what is within
# the radius of the cut (its border); only the lower half gets the upper one's border,
# so that a pair across a cut meets once. The halves are compared by matrix products,
# which beat a k-d tree's point by point descent on tens of dimensions.

#: Points of a core that are no longer halved.
CORE = 384
#: A cut must save at least this share of the comparisons.
SAVING = 0.1
#: Rows and columns of one matrix product.
TILE = 2_048
#: Rounding of squared distances between float32 points of norm at most 2.
SLACK = 2e-5


#: Share of a tile's pairs from which the whole tile is looked at more closely: a matrix
#: product takes about this share of the time per pair that single pairs take.
DENSE = 1 / 32

#: Rows, rows and which of their pairs are candidates → those that are still to be given,
#: both bool [rows, rows].
Closer = Callable[[Ints, Ints, Bools], Bools]


def close_pairs(
    points: Vectors, radius: float, closer: Closer | None = None
) -> Iterator[tuple[Ints, Ints]]:
    """Every pair of rows within `radius`, each once, and perhaps a few beyond it.

    No pair is missed; pairs whose squared distance exceeds radius² by less than
    about 2·`SLACK` may be given too, so the caller decides each. Memory stays
    near that of `points`, however dense they are.

    Args:
        points: (n, k) float32 of norm at most 2.
        radius: Euclidean, at least 0.
        closer: Looks at tiles in which many points crowd, as many copies of one text do,
            before any of their pairs is counted out, and says which pairs to give.

    Yields:
        (m,) and (m,) row numbers of at most `TILE`² pairs, in no order.
    """
    reach = float(np.sqrt(radius * radius + SLACK))
    # ⟨a, b⟩ − ‖a‖²/2 − ‖b‖²/2 = −‖a − b‖²/2, as one product of k + 2 columns.
    half = np.einsum("ij,ij->i", points, points) / 2
    extended = np.column_stack([points, half, np.ones_like(half)])
    everyone = np.arange(len(points), dtype=np.int64)
    waiting = [(everyone, everyone[:0])]
    while waiting:
        core, border = waiting.pop()
        halves = _halves(points, reach, core, border)
        if halves:
            waiting += halves
        else:
            yield from _compare(extended, reach, core, border, closer)


def _halves(points: Vectors, reach: float, core: Ints, border: Ints) -> list[tuple[Ints, Ints]]:
    """Both sides of a cut through the core's widest component; none if it saves too little."""
    if len(core) <= CORE:
        return []
    sample = points[core[:: len(core) // CORE]]
    component = points[:, int(sample.var(axis=0).argmax())]
    inside, outside = component[core], component[border]
    cut = np.partition(inside, len(inside) // 2)[len(inside) // 2]
    above = inside > cut
    lower, upper = core[~above], core[above]
    across = core[above & (inside <= cut + reach)]
    below = np.concatenate([across, border[outside <= cut + reach]])
    beyond = border[outside >= cut - reach]
    work = len(lower) * (len(lower) + len(below)) + len(upper) * (len(upper) + len(beyond))
    if work > (1 - SAVING) * len(core) * (len(core) + len(border)):
        return []
    return [(upper, beyond), (lower, below)]


def _compare(
    extended: Array, reach: float, core: Ints, border: Ints, closer: Closer | None
) -> Iterator[tuple[Ints, Ints]]:
    """Pairs within the core, and between core and border, tile by tile."""
    rows = np.concatenate([core, border])
    right = extended[rows]
    left = right[: len(core)].copy()
    left[:, -2:] = -1 * left[:, -1:-3:-1]  # −1 meets ‖b‖²/2, −‖a‖²/2 meets 1
    bound = np.float32(-reach * reach / 2)
    for i in range(0, len(core), TILE):
        for j in range(i, len(rows), TILE):
            near = left[i : i + TILE] @ right[j : j + TILE].T >= bound
            if i == j:
                near = np.triu(near, 1)
            if closer is not None and np.count_nonzero(near) > DENSE * near.size:
                near = closer(rows[i : i + len(near)], rows[j : j + TILE], near)
            a, b = np.divmod(np.flatnonzero(near), near.shape[1])
            yield rows[a + i], rows[b + j]


# Rows that crowd: looked at tile by tile, their pairs counted and joined instead of listed.
#
# Of n rows that are all near each other there are n(n−1)/2 pairs. Who only wants the connected
# components and the number of pairs needs neither of them listed: a spanning forest of each tile
# joins the same rows, and has fewer edges than the tile has rows and columns.

#: Share of a tile's pairs that are near the threshold from which float64 decides all of them
#: in one product.
MANY = 1 / 64
#: Rounding of cosines in a float64 product; what is closer to the threshold is given back.
ROUNDING = 1e-13


def _none() -> Ints:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Joined:
    """Pairs that are counted: `left`, `right` (e,) rows join what all of them join.

    Attributes:
        pairs: Pairs of rows, copies of a vector included.
    """

    left: Ints = field(default_factory=_none)
    right: Ints = field(default_factory=_none)
    pairs: int = 0


class Crowds:
    """Looks at dense tiles: a `Closer` of `close_pairs`.

    Args:
        vectors: (n, d) float32.
        norms: (n,) their lengths.
        pad: Cosines in float32 are off by less.
        rows: (m,) rows of the points that tiles are made of.
        weights: (m,) how many rows each represents; 0 for those whose pairs must be listed.
    """

    def __init__(
        self,
        vectors: Vectors,
        norms: Floats,
        threshold: float,
        pad: float,
        rows: Ints,
        weights: Ints,
    ):
        self._vectors, self._norms, self._rows, self._weights = vectors, norms, rows, weights
        self._threshold, self._pad = threshold, pad
        self._edges: list[tuple[Ints, Ints]] = []
        self._pairs = 0

    def joined(self) -> Joined:
        """What was counted so far."""
        if not self._edges:
            return Joined()
        left, right = (np.concatenate(part) for part in zip(*self._edges, strict=True))
        return Joined(left, right, self._pairs)

    def __call__(self, rows: Ints, other: Ints, near: Bools) -> Bools:
        """Pairs of a tile that are to be decided one by one; the others are joined or dropped."""
        # Only rows that meet somebody are looked at.
        some, others = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
        part = np.ix_(some, others)
        whole = (len(some), len(others)) == near.shape
        rows, other = rows[some], other[others]
        candidates = near if whole else near[part]
        left, right = self._units(rows, np.float32), self._units(other, np.float32)
        cosine = left @ right.T
        open_ = cosine >= self._threshold - self._pad
        open_ &= candidates
        if not open_.any():
            return np.zeros_like(near)
        alike = (self._weights[rows] > 0)[:, None] & (self._weights[other] > 0)
        if alike.any():
            sure = (cosine >= self._threshold + self._pad) & open_ & alike
            unsure = open_ & alike & ~sure
            if np.count_nonzero(unsure) > MANY * unsure.size:
                wide = self._units(rows, np.float64) @ self._units(other, np.float64).T
                sure |= unsure & (wide >= self._threshold + ROUNDING)
                open_ &= ~unsure | (wide > self._threshold - ROUNDING)
            self._join(rows, other, sure)
            open_ &= ~sure
        if whole:
            return np.asarray(open_)
        left_over = np.zeros_like(near)
        left_over[part] = open_
        return left_over

    def _units(self, points: Ints, kind: type[np.floating]) -> Floats:
        """(p, d) rows of length one."""
        rows = self._rows[points]
        return np.asarray(self._vectors[rows].astype(kind) / self._norms[rows, None].astype(kind))

    def _join(self, numbers: Ints, other: Ints, sure: Bools) -> None:
        weights, theirs = self._weights[numbers], self._weights[other]
        if weights.max(initial=1) == 1 and theirs.max(initial=1) == 1:
            self._pairs += int(np.count_nonzero(sure))
        else:
            self._pairs += sum(
                int(weight) * int(theirs[row].sum())
                for weight, row in zip(weights.tolist(), sure, strict=True)
            )
        left, right = spanning(sure)
        self._edges.append((self._rows[numbers[left]], self._rows[other[right]]))


def spanning(close: Bools) -> tuple[Ints, Ints]:
    """Rows and columns of `close` (r, c) whose pairs join what all its true cells join.

    >>> spanning(np.array([[True, True], [False, True]]))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    left, right = [_none()], [_none()]
    waiting: Bools = np.asarray(close.any(axis=1))
    free = np.ones(close.shape[1], dtype=bool)
    for start in np.flatnonzero(waiting).tolist():
        if not waiting[start]:
            continue
        waiting[start] = False
        rows = np.array([start])
        while len(rows):
            reached = np.flatnonzero(close[rows].any(axis=0) & free)
            free[reached] = False
            left.append(rows[close[np.ix_(rows, reached)].argmax(axis=0)])
            right.append(reached)
            rows = np.flatnonzero(close[:, reached].any(axis=1) & waiting)
            waiting[rows] = False
            left.append(rows)
            right.append(
                reached[close[np.ix_(rows, reached)].argmax(axis=1)] if len(rows) else rows
            )
    return np.concatenate(left), np.concatenate(right)


#: Leading principal components in which candidates are sought.
SEARCH_COMPONENTS = 32
#: Added to projected radii: float32 projections are off by up to about 1e-6.
PAD = 1e-5
#: Rows from which the principal components are computed (any basis is exact).
SEARCH_SAMPLE = 4_096
#: Rows, or pairs, that are worked on at a time.
SEARCH_BLOCK = 4_096


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
    numbers: list[tuple[Ints, Ints, Floats]] = []
    crowds = Crowds(vectors, norms, threshold, PAD, distinct, _weights(first, alike)[distinct])
    for a, b in close_pairs(projected, radius, crowds):
        left, right = distinct[a], distinct[b]
        # float32 only rejects, with room for its rounding; float64 decides.
        near = _dots(vectors, left, right) >= (threshold - PAD) * norms[left] * norms[right]
        left, right = left[near], right[near]
        cosine = cosines(vectors, norms, left, right)
        sure = cosine >= threshold
        numbers.append((left[sure], right[sure], cosine[sure]))
    if not numbers:
        none = np.empty(0, dtype=np.int64)
        return Pairs(first, none, none, np.empty(0), crowds.joined())
    left, right, cosine = (np.concatenate(parts) for parts in zip(*numbers, strict=True))
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
    for start in range(0, len(vectors), SEARCH_BLOCK):
        block = np.asarray(vectors[start : start + SEARCH_BLOCK])
        norms[start : start + len(block)] = np.einsum("ij,ij->i", block, block, dtype=np.float64)
    return np.sqrt(norms)


def cosines(vectors: Vectors, norms: Floats, left: Ints, right: Ints) -> Floats:
    """(p,) cosines of row pairs, in float64."""
    out = np.empty(len(left))
    for start in range(0, len(left), SEARCH_BLOCK):
        part = slice(start, start + SEARCH_BLOCK)
        a, b = left[part], right[part]
        dots = np.einsum("ij,ij->i", vectors[a], vectors[b], dtype=np.float64)
        out[part] = dots / (norms[a] * norms[b])
    return out


def _dots(vectors: Vectors, left: Ints, right: Ints) -> Vectors:
    """(p,) dot products of row pairs, in float32."""
    out = np.empty(len(left), dtype=np.float32)
    for start in range(0, len(left), SEARCH_BLOCK // 8):
        part = slice(start, start + SEARCH_BLOCK // 8)
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
    for start in range(0, n, SEARCH_BLOCK):
        block = np.zeros((min(SEARCH_BLOCK, n - start), words), dtype=np.float32)
        block[:, :width] = vectors[start : start + SEARCH_BLOCK]
        bits = block.view(np.uint64)
        # The high half of a product depends on all bits below it; the low half
        # does not, so it is mixed in before the sum.
        hashes[start : start + SEARCH_BLOCK] = ((bits ^ (bits >> np.uint64(29))) * weights).sum(
            axis=1
        )
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    begins = np.r_[True, ordered[1:] != ordered[:-1]] if n else np.empty(0, dtype=bool)
    heads = order[np.maximum.accumulate(np.where(begins, np.arange(n), 0))]
    first = np.arange(n, dtype=np.int64)
    rows, proposed = order[~begins], heads[~begins]
    for start in range(0, len(rows), SEARCH_BLOCK):
        a, b = rows[start : start + SEARCH_BLOCK], proposed[start : start + SEARCH_BLOCK]
        same = (vectors[a].view(np.uint32) == vectors[b].view(np.uint32)).all(axis=1)
        # Rows that only share a hash stay apart and are compared as a pair.
        first[a[same]] = b[same]
    return first


def _project(vectors: Vectors, norms: Floats, rows: Ints) -> Vectors:
    """(m, k) unit rows in their leading principal components, largest variance first."""
    from scipy.linalg import eigh

    n, width = len(rows), vectors.shape[1]
    k = min(SEARCH_COMPONENTS, width)
    step = max(1, -(-n // SEARCH_SAMPLE))
    sample = vectors[rows[::step]]
    sample /= norms[rows[::step], None].astype(np.float32)
    if len(sample):
        sample -= sample.mean(axis=0)
    spread = (sample.T @ sample).astype(np.float64)
    basis = eigh(spread, subset_by_index=[width - k, width - 1])[1][:, ::-1].astype(np.float32)
    out = np.empty((n, k), dtype=np.float32)
    for start in range(0, n, SEARCH_BLOCK):
        part = rows[start : start + SEARCH_BLOCK]
        out[start : start + SEARCH_BLOCK] = (vectors[part] @ basis) / norms[part, None].astype(
            np.float32
        )
    return out


# The embedding matrix of a table of queries.


def query_vectors(
    tables: Mapping[str, pa.Table], encoder: str | None, *, where: str
) -> tuple[NDArray[np.float32], list[int | None], str]:
    """Vectors in the order of `queries`, characters seen, and the encoder's name.

    Args:
        encoder: Name in the `embeddings` table; None when it holds only one.

    Returns:
        (n, d) float32 (a view where the order already agrees), n numbers of
        characters or None, name.

    Raises:
        BadInput: there is no such encoder, a query has no vector, widths
            differ, or a vector is zero or not finite; queries are named.
    """
    embeddings = tables.get("embeddings")
    if embeddings is None:
        raise BadInput(
            f"{where} needs embeddings, and the release has none",
            where="tables['embeddings']",
            next_step="set the recipe's 'embed' section",
        )
    names = sorted(pc.unique(embeddings.column("encoder")).to_pylist())
    if encoder is None and len(names) > 1:
        raise BadInput(
            f"{where}: the table holds several encoders: {', '.join(names)}",
            next_step="name one of them as 'encoder'",
        )
    name = encoder if encoder is not None else (names[0] if names else "")
    if names and name not in names:
        raise BadInput(
            f"{where}: no embedding by the encoder {name!r}",
            next_step=f"the table holds: {', '.join(names)}",
        )
    if len(names) > 1:
        embeddings = embeddings.filter(pc.equal(embeddings.column("encoder"), name))
    wanted = tables["queries"].column("query_id")
    place = pc.index_in(wanted, embeddings.column("query_id"))
    if place.null_count:
        lacking = wanted.filter(pc.is_null(place)).to_pylist()
        raise BadInput(
            f"{where}: {len(lacking)} querie(s) have no embedding by {name!r}",
            where=", ".join(lacking[:3]),
            next_step="run the embed stage over all queries",
        )
    if not len(wanted):
        return np.empty((0, 1), dtype=np.float32), [], name
    rows = place.to_numpy()
    matrix = _matrix(embeddings.column("vector"), embeddings.column("query_id"), where)
    if not np.array_equal(rows, np.arange(len(matrix))):
        matrix = matrix[rows]
    norms = row_norms(matrix)
    bad = np.flatnonzero(~(norms > 0) | ~np.isfinite(norms))
    if len(bad):
        shown = wanted.take(pa.array(bad[:3])).to_pylist()
        raise BadInput(
            f"{where}: {len(bad)} embedding(s) are zero or not finite",
            where="query " + ", ".join(shown),
            next_step="embed these questions again; an empty text has no direction",
        )
    if "seen_chars" not in embeddings.column_names:
        return matrix, [None] * len(wanted), name
    return matrix, embeddings.column("seen_chars").take(place).to_pylist(), name


def _matrix(column: pa.ChunkedArray, ids: pa.ChunkedArray, where: str) -> NDArray[np.float32]:
    """(n, d) float32; no copy when the column is one chunk."""
    lengths = pc.list_value_length(column)
    width = pc.max(lengths).as_py()
    odd = pc.fill_null(pc.not_equal(lengths, width), True)
    if pc.any(odd).as_py():
        raise BadInput(
            f"{where}: vectors of one encoder differ in width",
            where="query " + ", ".join(ids.filter(odd).to_pylist()[:3]),
            next_step="embed the queries again with one encoder",
        )
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    values = array.flatten()
    if values.type != pa.float32():
        values = values.cast(pa.float32())
    flat: NDArray[np.float32] = values.to_numpy(zero_copy_only=False)
    return flat.reshape(-1, width)
