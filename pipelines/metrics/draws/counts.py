"""How often each of n questions is drawn in a resample, straight from the generator's bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.arrays import Ints

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
        found, self._rest = self._rest[:most], self._rest[most:]
        return found

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
