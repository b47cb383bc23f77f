"""What a bootstrap draws, and sums over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import (
    ROWS,
    Array,
    Bools,
    Floats,
    Ints,
    by_rows,
    every,
    ratio,
)

# How often each of n questions is drawn in a resample, straight from the generator's bits.

#: Numbers that are made at once: they stay in the processor's cache.
_TOGETHER = 1 << 15
_ONE, _HALF = np.int32(1), np.uint64(32)


class Numbers:
    """Random whole numbers below a limit: those of `Generator(PCG64(seed)).integers`.

    A draw is 32 bits times the limit, divided by 2³²; the few draws that would make some
    numbers likelier are left out (Lemire, 2019, Fast Random Integer Generation in an
    Interval). Done for many draws at once it takes two thirds of the generator's time.
    """

    def __init__(self, seed: int, below: int) -> None:
        self._bits = np.random.PCG64(seed)
        self._below = np.uint64(below)
        self._least = (1 << 32) % max(below, 1)
        self._rest = np.empty(0, np.int64)

    def some(self, most: int) -> Ints:
        """(1 to `most`,) the next numbers."""
        while not len(self._rest):
            self._rest = self._made()
        result, self._rest = self._rest[:most], self._rest[most:]
        return result

    def _made(self) -> Ints:
        raw = self._bits.random_raw(_TOGETHER // 2).astype("<u8", copy=False)
        made: NDArray[np.uint64] = np.multiply(raw.view("<u4"), self._below, dtype="<u8")
        low = made.view("<u4")[::2]
        if low.min() < self._least:
            made = made[low >= self._least]
        made >>= _HALF
        return np.asarray(made.view(np.int64))


def counted(numbers: Numbers, rows: int, n: int) -> NDArray[np.int32]:
    """(rows, n) how often each of n was among the n drawn for a row.

    >>> counted(Numbers(0, 4), 2, 4)
    array([[0, 1, 2, 1],
           [3, 1, 0, 0]], dtype=int32)
    """
    counts = np.zeros((rows, n), np.int32)
    for row in counts:
        left = n
        while left:
            drawn = numbers.some(left)
            np.add.at(row, drawn, _ONE)
            left -= len(drawn)
    return counts


# Sums of columns over the resamples of one drawing, each computed once.
#
# Routers that choose alike, settings of a sweep that change nothing and models that several
# figures are about give the same columns again and again.

#: Bytes of sums that are kept; columns beyond them are computed each time.
MOST_BYTES = 64 << 20


class KeptSums:
    """Sums by column, of columns whose sums are exact: nothing beside them changes a digit."""

    def __init__(self) -> None:
        self._known: dict[bytes, Array] = {}
        self._left = MOST_BYTES

    def fill(self, out: Floats, at: Ints, values: Array, product: Callable[[Array], Array]) -> None:
        """Write the sums of the columns of `values` (n, k) to the columns `at` of `out`.

        Args:
            out: (resamples, …).
            at: (k,) positions in it.
            product: (n, j) some of the columns → (resamples, j) their sums.
        """
        columns = np.ascontiguousarray(values.T)
        names = [sha256(column.data).digest() for column in columns]
        first = {name: k for k, name in enumerate(names) if name not in self._known}
        if first:
            sums = np.ascontiguousarray(product(values[:, list(first.values())]).T)
            new = dict(zip(first, sums, strict=True))
            for name, column in new.items():
                self._keep(name, column)
        else:
            new = {}
        for k, name in zip(at.tolist(), names, strict=True):
            out[:, k] = new[name] if name in new else self._known[name]

    def _keep(self, name: bytes, sums: Array) -> None:
        if sums.nbytes <= self._left:
            self._left -= sums.nbytes
            self._known[name] = sums.copy()


# Paired bootstrap over queries, as count-weighted sums.
#
# A resample of n queries with replacement is a vector of n counts. For every
# statistic that is a ratio of sums over queries, all resamples together are one
# matrix product: (resamples × n counts) · (n × k values). Using the same counts
# for every column is what makes the comparison paired. Blocks keep the counts
# small; the product runs in float64.

#: Bytes of one block of counts; a block of values comes on top.
BLOCK_BYTES = 32 << 20
#: Whole numbers up to these are exact in float32 and float64, and so are their sums in any order.
_EXACT, _EXACT64 = 1 << 24, 1 << 53
#: Bytes of counts that pass through a product at once: they stay in the processor's cache.
PASSING_BYTES = 1 << 20
#: Resamples in a block, however many queries there are: values on disk are read once
#: for each block.
TOGETHER = 16

#: Up to this many counts are kept after they were first drawn.
KEPT_CELLS = 160 << 20


class _Blocks(list[NDArray[np.integer[Any]]]):
    """Blocks of counts that draws share, and sums over them."""

    def __init__(self, blocks: Iterable[NDArray[np.integer[Any]]]) -> None:
        super().__init__(blocks)
        self.sums = KeptSums()


#: What a kept drawing depends on → its blocks, while a `Draws` holds them.
_SHARED: WeakValueDictionary[tuple[int, int, int, bytes | None], _Blocks] = WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class Draws:
    """Which queries each resample holds, reproducible from the seed.

    Attributes:
        n: number of queries.
        resamples: number of resamples.
        seed: seed of the generator; the same seed and n give the same draws
            whatever the block size.
        groups: (n,) group number of each query for a clustered bootstrap:
            whole groups are drawn, as many as there are groups. None draws
            single queries.
    """

    n: int
    resamples: int = 10_000
    seed: int = 0
    groups: NDArray[np.int64] | None = None

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """(first resample, counts of shape (block, n)) in float64, in order."""
        first = 0
        for counts in self._blocks if self._keep else self._draw():
            yield first, counts.astype(np.float64)
            first += len(counts)

    def passing(self, kind: Any = np.float64) -> Iterator[tuple[slice, Floats]]:
        """(resamples, counts) as `blocks`, of type `kind`, in pieces that share one buffer.

        A piece holds until the next one is asked for. Products over them take a third of the
        time: nothing is allocated, and counts are read from memory as bytes.
        """
        rows = max(TOGETHER, PASSING_BYTES // (np.dtype(kind).itemsize * max(self.n, 1)))
        buffer = np.empty((min(rows, self.resamples), self.n), kind)
        first = 0
        for counts in self._blocks if self._keep else self._draw():
            for start in range(0, len(counts), rows):
                part = counts[start : start + rows]
                piece = buffer[: len(part)]
                np.copyto(piece, part)
                yield slice(first, first + len(part)), piece
                first += len(part)

    @property
    def _keep(self) -> bool:
        return self.resamples * self.n <= KEPT_CELLS

    @cached_property
    def _blocks(self) -> _Blocks:
        """All blocks of a small problem in the narrowest type: drawn once, used often.

        Draws of the same queries share them for as long as one of them lives.
        """
        grouped = None if self.groups is None else sha256(self.groups.tobytes()).digest()
        key = (self.n, self.resamples, self.seed, grouped)
        held = _SHARED.get(key)
        if held is None:
            held = _SHARED[key] = _Blocks(
                block.astype(np.uint8 if block.max(initial=0) < 256 else np.uint32)
                for block in self._draw()
            )
        return held

    def _draw(self) -> Iterator[NDArray[np.integer[Any]]]:
        code, clusters = None, self.n
        if self.groups is not None:
            code = np.unique(self.groups, return_inverse=True)[1]
            clusters = int(code.max()) + 1
        numbers = Numbers(self.seed, clusters)
        size = max(TOGETHER, BLOCK_BYTES // (8 * max(self.n, 1)))
        for first in range(0, self.resamples, size):
            rows = min(size, self.resamples - first)
            counts = counted(numbers, rows, clusters)
            yield counts if code is None else counts[:, code]

    def sums(self, values: Floats) -> Floats:
        """(resamples, k) sums of each column of `values` (n, k) over each resample.

        The memory is bounded by one block of counts and the result. Sums of small whole
        numbers, such as labels, go through float32: half the time and the same sums. Where
        all sums of a small problem are exact, each column is summed once.
        """
        small = self._exact(values)
        if small is None:
            return self._product(values, self._kind(values)).astype(np.float64, copy=False)
        out = np.empty((self.resamples, values.shape[1]))
        for kind, which in ((np.float32, small), (np.float64, ~small)):
            at, part = np.flatnonzero(which), values[:, which].astype(kind)
            self._blocks.sums.fill(out, at, part, lambda some: self._product(some, some.dtype))
        return out

    def _exact(self, values: Floats) -> Bools | None:
        """(k,) whether each column of a small problem has exact sums in float32 already.

        None where one has inexact sums in float64: what is beside it decides its last digit.
        """
        if not self._keep or self.n > ROWS or not (values == np.rint(values)).all():
            return None
        most = np.abs(values).max(axis=0, initial=0.0) * self._drawn
        return None if (most > _EXACT64).any() else most <= _EXACT

    def _product(self, values: Array, kind: Any) -> Array:
        """(resamples, k) sums in type `kind`."""
        values = by_rows(lambda part: part.astype(kind, copy=False), values)
        out = np.empty((self.resamples, values.shape[1]), kind)
        for here, counts in self.passing(kind):
            np.matmul(counts, values, out=out[here])
        return out

    def _kind(self, values: Floats) -> Any:
        """float32 where all values are whole and each sum of a resample is exact in it."""
        most = _EXACT // max(self._drawn, 1)
        small = every(lambda part: (part == np.rint(part)) & (np.abs(part) <= most), values)
        return np.float32 if small else np.float64

    @cached_property
    def _drawn(self) -> int:
        """The most questions that a resample can hold."""
        if self.groups is None:
            return self.n
        sizes = np.unique(self.groups, return_counts=True)[1]
        return int(sizes.max(initial=0)) * len(sizes)

    def means(self, values: Floats) -> Floats:
        """(resamples, k) means over each resample; NaN cells do not count.

        A column that is NaN throughout a resample has mean NaN there.
        """
        full = every(lambda part: ~np.isnan(part), values)
        if full and self.groups is None:
            return self.sums(values) / self.n
        sums = self.sums(by_rows(lambda part: np.where(np.isnan(part), 0.0, part), values))
        if full:
            totals = self.sums(np.ones((self.n, 1)))
        else:
            totals = self.sums(by_rows(lambda part: (~np.isnan(part)).astype(float), values))
        return ratio(sums, totals)


def interval(
    replicates: Floats, level: float = 0.95, *, value: float | None = None
) -> tuple[float, float]:
    """Percentile interval of one statistic's replicates; NaN replicates are left out.

    Efron & Tibshirani (1993), An Introduction to the Bootstrap, the percentile interval.

    Args:
        value: The statistic itself. Drawing again pushes a distance, an entropy or the largest of
            several to one side, as far as to miss it. The replicates are then moved so that their
            median is the value, and the ends kept where it or any replicate is.

    >>> [round(end, 4) for end in interval(np.array([0.5, 0.5, 0.75]), value=0.25)]
    [0.25, 0.4875]
    """
    known = replicates[~np.isnan(replicates)]
    if not len(known):
        return float("nan"), float("nan")
    tail = (1 - level) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    if value is not None and not low <= value <= high:
        moved = value - np.median(known)
        low = max(low + moved, min(value, known.min()))
        high = min(high + moved, max(value, known.max()))
    return float(low), float(high)


def p_value(replicates: Floats) -> float:
    """Two-sided bootstrap p-value that a difference is zero.

    Twice the smaller share of replicates at or beyond zero, counting the
    observed sample once so that it is never 0 (Davison & Hinkley, 1997,
    Bootstrap Methods and Their Application).

    >>> p_value(np.array([0.1, 0.2, 0.3]))
    0.5
    """
    known = replicates[~np.isnan(replicates)]
    if not len(known):
        return float("nan")
    below = (np.count_nonzero(known <= 0) + 1) / (len(known) + 1)
    above = (np.count_nonzero(known >= 0) + 1) / (len(known) + 1)
    return float(min(1.0, 2 * min(below, above)))
