"""Rows that crowd: looked at tile by tile, their pairs counted and joined instead of listed.

Of n rows that are all near each other there are n(n−1)/2 pairs. Who only wants the connected
components and the number of pairs needs neither of them listed: a spanning forest of each tile
joins the same rows, and has fewer edges than the tile has rows and columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints, Vectors

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

    def __call__(self, one: Ints, other: Ints, near: Bools) -> Bools:
        """Pairs of a tile that are to be decided one by one; the others are joined or dropped."""
        # Only rows that meet somebody are looked at.
        some, others = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
        part = np.ix_(some, others)
        whole = (len(some), len(others)) == near.shape
        one, other = one[some], other[others]
        candidates = near if whole else near[part]
        left, right = self._units(one, np.float32), self._units(other, np.float32)
        cosine = left @ right.T
        open_ = cosine >= self._threshold - self._pad
        open_ &= candidates
        if not open_.any():
            return np.zeros_like(near)
        alike = (self._weights[one] > 0)[:, None] & (self._weights[other] > 0)
        if alike.any():
            sure = (cosine >= self._threshold + self._pad) & open_ & alike
            unsure = open_ & alike & ~sure
            if np.count_nonzero(unsure) > MANY * unsure.size:
                wide = self._units(one, np.float64) @ self._units(other, np.float64).T
                sure |= unsure & (wide >= self._threshold + ROUNDING)
                open_ &= ~unsure | (wide > self._threshold - ROUNDING)
            self._join(one, other, sure)
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

    def _join(self, one: Ints, other: Ints, sure: Bools) -> None:
        weights, theirs = self._weights[one], self._weights[other]
        if weights.max(initial=1) == 1 and theirs.max(initial=1) == 1:
            self._pairs += int(np.count_nonzero(sure))
        else:
            self._pairs += sum(
                int(weight) * int(theirs[row].sum())
                for weight, row in zip(weights.tolist(), sure, strict=True)
            )
        left, right = spanning(sure)
        self._edges.append((self._rows[one[left]], self._rows[other[right]]))


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
