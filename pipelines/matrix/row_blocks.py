"""Work on long arrays that treats each row alone, done a block of rows at a time.

`memmap.allocate` makes the array for the result. Up to one block it is the plain call; beyond
that the figures do not depend on the size of blocks, to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Bools, Floats
from routeyard.pipelines.matrix import memmap


def by_rows(work: Callable[..., Any], *values: Array) -> Any:
    """`work(*values)`, for work that gives each row the same whatever rows are beside it.

    Args:
        values: arrays of n rows each.

    Returns:
        (n, …) what `work` returns.
    """
    n = len(values[0])
    if n <= memmap.ROWS:
        return work(*values)
    out: Array | None = None
    for part in memmap.blocks(n):
        found = work(*(value[part] for value in values))
        if out is None:
            out = memmap.allocate((n, *found.shape[1:]), found.dtype)
        out[part] = found
    return out


def known(values: Array) -> Bools:
    """(n, …) whether there is a value."""
    return np.asarray(by_rows(lambda part: ~np.isnan(part), values))


def sums_of(work: Callable[..., Any], *values: Array) -> Any:
    """`work(*values).sum(axis=0)` of such work on matrices, or on positions of their rows."""
    n, step = values[0].shape, values[0].strides
    if len(n) > 1 and (n[1] == 1 or 0 < step[0] < step[1]):
        return work(*values).sum(axis=0)  # numpy adds adjacent values in another order
    total: Array | None = None  # rows are added one after the other, so blocks change nothing
    for part in memmap.blocks(max(n[0], 1)):
        found = work(*(value[part] for value in values))
        if total is not None:
            found = np.concatenate([total[None], found])
        total = found.sum(axis=0)
    return total


def every(work: Callable[..., Any], *values: Array) -> bool:
    """Whether `work(*values)` is true throughout."""
    return all(
        bool(np.all(work(*(value[part] for value in values))))
        for part in memmap.blocks(len(values[0]))
    )


def side_by_side(columns: Sequence[Array]) -> Floats:
    """(n, k) columns of n numbers each as one array."""
    out = memmap.allocate((len(columns[0]), len(columns)))
    for k, column in enumerate(columns):
        out[:, k] = column
    return out


def distinct(values: Array) -> Array:
    """`np.unique(values)`, without a sorted copy of all of them."""
    parts = [np.unique(values[part]) for part in memmap.blocks(len(values))]
    return np.unique(np.concatenate(parts)) if parts else np.unique(values)
