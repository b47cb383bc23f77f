"""Texts of a release's questions: a tuple where they are few, one mapped Arrow array where not.

A Python string takes 50 bytes beside its letters. `Texts` is a sequence of strings like a tuple;
its letters are in a file without a name in the temporary folder, and a part of it is its rows.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import overload

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Ints
from routeyard.pipelines.matrix.memmap import allocate, blocks, disk_full

#: Texts from which a column is no tuple any more.
MANY = 500_000


class Texts(Sequence[str]):
    """Strings of an Arrow array, all or those at some rows; equal to a tuple of the same."""

    def __init__(self, values: pa.LargeStringArray, rows: Ints | None = None) -> None:
        self._values, self._rows = values, rows

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Texts: ...
    def __getitem__(self, at: int | slice) -> str | Texts:
        if not isinstance(at, slice):
            return str(self._values[int(at if self._rows is None else self._rows[at])].as_py())
        if self._rows is not None:
            return Texts(self._values, self._rows[at])
        first, after, step = at.indices(len(self._values))
        if step != 1:
            return Texts(self._values, np.arange(first, after, step))
        return Texts(self._values.slice(first, max(after - first, 0)))

    def __len__(self) -> int:
        return len(self._values) if self._rows is None else len(self._rows)

    def __iter__(self) -> Iterator[str]:
        for part in self.parts():
            yield from part.to_pylist()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as long as a release

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:
        return self.array().cast(type or pa.string())

    def array(self) -> pa.LargeStringArray:
        """All of them as one array: a copy in memory where they are at some rows."""
        return self._values if self._rows is None else self._values.take(pa.array(self._rows))

    def parts(self) -> Iterator[pa.LargeStringArray]:
        """Arrays of a block of texts each, in order."""
        for part in blocks(len(self)):
            if self._rows is None:
                yield self._values[part]
            else:
                yield self._values.take(pa.array(self._rows[part]))

    def take(self, rows: Ints) -> Texts:
        """The texts at some of these rows."""
        return Texts(self._values, rows if self._rows is None else self._rows[rows])


def texts_of(parts: Iterable[pa.Array], n: int) -> Sequence[str]:
    """Texts without nulls, to be held: see the module.

    Args:
        parts: arrays of some of the texts each, in order; one at a time is in memory.
        n: how many there are in all.

    Raises:
        DiskFull: the temporary folder is too small for them.
    """
    if n < MANY:
        return tuple(text for part in parts for text in part.to_pylist())
    starts = allocate((n + 1,), np.int64)
    starts[0], at = 0, 0
    try:
        with tempfile.TemporaryFile(prefix="routeyard-texts-") as file:
            for part in parts:
                bounds, letters = _letters(part)
                starts[at + 1 : at + 1 + len(part)] = starts[at] + bounds[1:] - bounds[0]
                file.write(letters)
                at += len(part)
            file.flush()
            size = file.tell()
            held = mmap.mmap(file.fileno(), size) if size else b""
    except OSError as error:
        raise disk_full(int(starts[at]), "texts", error) from error
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(held)]
    return Texts(pa.Array.from_buffers(pa.large_string(), n, buffers))


def _letters(part: pa.Array) -> tuple[Ints, memoryview]:
    """Where each text begins and the last ends, and the bytes from the first to the last."""
    values = part.cast(pa.large_string())
    _, bounds, letters = values.buffers()
    if not len(values) or letters is None:
        return np.zeros(len(values) + 1, np.int64), memoryview(b"")
    at = np.frombuffer(bounds, np.int64)[values.offset : values.offset + len(values) + 1]
    return at, memoryview(letters)[at[0] : at[-1]]


def array_of(texts: Sequence[str]) -> pa.Array:
    """Texts as one array, from disk if they are there."""
    return texts.array() if isinstance(texts, Texts) else pa.array(texts, pa.string())


def some(texts: Sequence[str], rows: Ints) -> Sequence[str]:
    """Texts at some rows; none of none."""
    if isinstance(texts, Texts):
        return texts.take(rows)
    return tuple(texts[i] for i in rows) if texts else ()


def together(first: Sequence[str], second: Sequence[str]) -> Sequence[str]:
    """Texts, then others."""
    if isinstance(first, Texts) or isinstance(second, Texts):
        return texts_of(chain(parts_of(first), parts_of(second)), len(first) + len(second))
    return tuple(first) + tuple(second)


def parts_of(texts: Sequence[str]) -> Iterator[pa.Array]:
    """Texts as arrays, one at a time if they are on disk."""
    return texts.parts() if isinstance(texts, Texts) else iter([pa.array(texts, pa.string())])
