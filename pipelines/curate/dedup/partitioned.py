"""Near-duplicate pairs of more vectors than one machine holds, exact across borders.

Rows are halved again and again, each time along one of the leading principal
components. ‖a − b‖ ≥ |u·a − u·b| for unit u, so two vectors with cosine ≥ δ are
within r = √(2 − 2δ) of each other along u. The half below a cut also takes the rows
up to r above it: of any such pair both rows are in the half of the lower one, and
so, halving by halving, both are in some part. Each part is searched on its own;
the union over parts is what one search over all rows gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints, Vectors
from routeyard.pipelines.curate.dedup.search import PAD, Pairs, components, near_duplicate_pairs
from routeyard.pipelines.errors import BadInput

#: Components along which rows may be cut; more cut no better on sentence embeddings.
COMPONENTS = 16
#: Rows one search takes; more are parted first, since the time of one search grows faster
#: than its rows.
PART_ROWS = 1_000_000
#: Rows the cuts are planned on: every so-many-th, which is the same in every run.
SAMPLE = 65_536
#: Rows are turned to float64 this many at a time.
BLOCK = 16_384
#: Where a cut is tried: the lower half takes the border, so most are below the middle.
_SHARES = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55)
#: A half that keeps more of its rows than this is mostly border: it is not cut again.
_NO_SMALLER = 0.95


class Cut(NamedTuple):
    """One halving: rows at or below `at` along a component and those at or above.

    `low` and `high` are the cut that follows, or −1 − the number of a part.
    """

    component: int
    at: float
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Partition:
    """How the rows are parted.

    Attributes:
        directions: (k, d) unit vectors.
        cuts: The first one halves all rows; none leaves one part.
        reach: How far beyond a cut its lower half looks, padding included.
    """

    directions: Floats
    cuts: tuple[Cut, ...]
    reach: float

    def __len__(self) -> int:
        return len(self.cuts) + 1

    def positions(self, vectors: Vectors) -> Floats:
        """(n, k) u·v / ‖v‖ in float64."""
        out = np.empty((len(vectors), len(self.directions)))
        for start in range(0, len(vectors), BLOCK):
            wide = vectors[start : start + BLOCK].astype(np.float64)
            norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
            if not (norms > 0).all() or not np.isfinite(norms).all():
                raise BadInput(
                    "some vectors are zero or not finite", next_step="embed these texts again"
                )
            out[start : start + BLOCK] = wide @ self.directions.T / norms[:, None]
        return out

    def members(self, positions: Floats) -> Iterator[tuple[int, Ints]]:
        """Each part with the rows it holds, border included, ascending."""
        waiting = [(0 if self.cuts else -1, np.arange(len(positions), dtype=np.int64))]
        while waiting:
            number, rows = waiting.pop()
            if number < 0:
                yield -1 - number, rows
                continue
            cut = self.cuts[number]
            along = positions[rows, cut.component]
            waiting.append((cut.low, rows[along <= cut.at + self.reach]))
            waiting.append((cut.high, rows[along >= cut.at]))


def search(
    vectors: Vectors,
    threshold: float,
    *,
    alike: Bools | None = None,
    part_rows: int = PART_ROWS,
) -> Pairs:
    """All near-duplicate pairs of any number of vectors, parted when they are many.

    Args:
        vectors: (n, d) float32.
        threshold: δ in (0, 1].
        alike: Rows whose pairs need not be listed where they crowd; of parted rows all are.
        part_rows: Rows above which they are parted; the pairs do not depend on it.

    Raises:
        BadInput: a vector is zero or not finite.
    """
    n = len(vectors)
    if n <= part_rows:
        return near_duplicate_pairs(vectors, threshold, alike)
    step = -(-n // SAMPLE)
    sample = np.ascontiguousarray(vectors[::step])
    if not np.isfinite(sample).all() or not sample.any(axis=1).all():
        raise BadInput("some vectors are zero or not finite", next_step="embed these texts again")
    partition = plan_parts(sample, threshold, -(-n // part_rows))
    return join_parts(
        n,
        [
            search_part(rows, vectors[rows], threshold)
            for _, rows in partition.members(partition.positions(vectors))
        ],
    )


@dataclass(frozen=True, slots=True)
class PartPairs:
    """What one part holds, in row numbers of the whole set.

    Attributes:
        copies: (c, 2) rows that hold the same bytes, the smaller first.
        left: (p,) and `right`: (p,) near-duplicate rows.
        similarity: (p,) cosine in float64.
    """

    copies: Ints
    left: Ints
    right: Ints
    similarity: Floats


def plan_parts(sample: Vectors, threshold: float, count: int) -> Partition:
    """Cuts that halve the largest part until there are `count`.

    Each cut is the one, over components and a few quantiles, whose larger half is
    smallest.

    Args:
        sample: (m, d) rows drawn from all shards; any sample is exact, a fair one is fast.
        threshold: δ in (0, 1].
        count: Parts wanted; fewer come back when more would be no smaller.
    """
    from scipy.linalg import eigh

    unit = sample.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    centred = unit - unit.mean(axis=0)
    width = unit.shape[1]
    spread = centred.T @ centred
    kept = [width - min(COMPONENTS, width), width - 1]
    directions = eigh(spread, subset_by_index=kept)[1].T[::-1]
    reach = float(np.sqrt(max(0.0, 2 - 2 * threshold))) + PAD
    positions = unit @ directions.T
    # Part number → its rows of the sample, and the place in `cuts` that leads to it.
    parts = {0: np.arange(len(unit))}
    led: dict[int, tuple[int, str]] = {}
    whole: set[int] = set()
    cuts: list[Cut] = []
    while len(parts) < count and len(whole) < len(parts):
        largest = max((len(rows), -part) for part, rows in parts.items() if part not in whole)
        part = -largest[1]
        rows = parts[part]
        found = _best_cut(positions[rows], reach)
        if found is None:
            whole.add(part)
            continue
        component, at = found
        along = positions[rows, component]
        new = len(parts)
        parts[part], parts[new] = rows[along <= at + reach], rows[along >= at]
        if part in led:
            above, side = led[part]
            cuts[above] = cuts[above]._replace(**{side: len(cuts)})
        led[part], led[new] = (len(cuts), "low"), (len(cuts), "high")
        cuts.append(Cut(component, at, -1 - part, -1 - new))
    return Partition(directions, tuple(cuts), reach)


def _best_cut(positions: Floats, reach: float) -> tuple[int, float] | None:
    """Component and place of the cut with the smallest larger half."""
    n = len(positions)
    best: tuple[int, int, int, float] | None = None
    ordered = np.sort(positions, axis=0)
    for component in range(positions.shape[1] if n > 1 else 0):
        line = ordered[:, component]
        for share in _SHARES:
            at = float(line[int(share * n)])
            low = int(np.searchsorted(line, at + reach, "right"))
            high = n - int(np.searchsorted(line, at, "left"))
            tried = (max(low, high), low + high, component, at)
            best = tried if best is None else min(best, tried)
    if best is None or best[0] > _NO_SMALLER * n:
        return None
    return best[2], best[3]


def search_part(rows: Ints, vectors: Vectors, threshold: float) -> PartPairs:
    """All near-duplicates among the members of one part.

    Args:
        rows: (m,) row numbers in the whole set, ascending.
        vectors: (m, d) their vectors.
    """
    found = near_duplicate_pairs(vectors, threshold)
    again = np.flatnonzero(found.first != np.arange(len(rows)))
    copies = np.stack([rows[found.first[again]], rows[again]], axis=1)
    return PartPairs(copies, rows[found.left], rows[found.right], found.similarity)


def join_parts(n: int, parts: Sequence[PartPairs]) -> Pairs:
    """Pairs over all n rows, equal to one search over all of them.

    Pairs in a border are found by several parts and kept once.
    """
    copies = np.concatenate([p.copies for p in parts]) if parts else np.empty((0, 2), np.int64)
    label = components(n, copies[:, 0], copies[:, 1])
    # The smallest row of each component represents all copies of a vector.
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
