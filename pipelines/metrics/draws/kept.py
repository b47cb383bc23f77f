"""Sums of columns over the resamples of one drawing, each computed once.

Routers that choose alike, settings of a sweep that change nothing and models that several
figures are about give the same columns again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Ints

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
