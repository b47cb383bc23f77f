"""Arrays as large as a release: in memory while they are small, on disk when they are not.

A large one is stored in a file without a name in the temporary folder (`TMPDIR`) and is mapped into
memory. Values and results are the same, but its pages can be taken back, so what a process needs
is what it works on. The file goes with the array, also when the process is killed.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Ints
from routeyard.pipelines.errors import DiskFull

#: Bytes from which an array is stored on disk.
LARGE = 128 << 20
#: Rows that are worked on together.
ROWS = 1 << 16


def allocate(shape: tuple[int, ...], dtype: Any = np.float64, fill: float | None = None) -> Array:
    """An array of a shape, every value `fill` (None: whatever is there).

    Raises:
        DiskFull: the temporary folder is too small for it.
    """
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if size < max(LARGE, 1):
        return np.empty(shape, kind) if fill is None else np.full(shape, fill, kind)
    with tempfile.TemporaryFile(prefix="routeyard-room-") as file:
        _reserve(file.fileno(), size)
        found = np.frombuffer(mmap.mmap(file.fileno(), size), dtype=kind).reshape(shape)
    if fill is not None:
        for part in blocks(len(found)):
            found[part] = fill
    return found


def on_disk_if_large(values: Array) -> Array:
    """The same values; a copy on disk where they are large and in memory."""
    if values.nbytes < LARGE or on_disk(values):
        return values
    out = allocate(values.shape, values.dtype)
    out[...] = values
    return out


def on_disk(values: Any) -> bool:
    """Whether an array is in a mapped file."""
    while isinstance(values, np.ndarray):
        values = values.base
    return isinstance(values, memoryview | mmap.mmap)


def take_rows(values: Array, rows: Ints) -> Array:
    """`values[rows]`, on disk where that is large."""
    shape = (len(rows), *values.shape[1:])
    out = allocate(shape, values.dtype)
    for part in blocks(len(rows)):
        out[part] = values[rows[part]]
    return out


def blocks(rows: int) -> Iterator[slice]:
    """Ranges of rows that are worked on together, in order."""
    for first in range(0, rows, ROWS):
        yield slice(first, min(first + ROWS, rows))


def _reserve(file: int, size: int) -> None:
    """Disk space reserved now: a page that finds none later would end the process."""
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        raise disk_full(size, "figures", error) from error


def disk_full(size: int, of: str, error: OSError) -> DiskFull:
    """Error of a temporary folder that is too small for so many bytes."""
    return DiskFull(
        f"there is no room for {size / 1e9:.1f} GB of {of}: {error.strerror}",
        where=tempfile.gettempdir(),
        next_step="set TMPDIR to a folder of a disk with more room",
    )
