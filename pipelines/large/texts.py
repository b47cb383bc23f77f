"""Texts of a release's questions: a tuple where they are few, one mapped Arrow array where not.

A Python string takes 50 bytes beside its letters. `Texts` is a sequence of strings like a tuple;
its letters lie in a file without a name in the temporary folder, and a part of it is its rows.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.large.room import blocks, no_room

#: Texts from which a column is no tuple any more.
MANY = 500_000


class Texts(Sequence[str]):
    """Strings of an Arrow array at some rows, in their order; equal to a tuple of the same."""

    def __init__(self, values: pa.Array, rows: NDArray[np.int64]) -> None:
        self._values, self._rows = values, rows

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Texts: ...
    def __getitem__(self, at: int | slice) -> str | Texts:
        if isinstance(at, slice):
            return Texts(self._values, self._rows[at])
        return str(self._values[int(self._rows[at])].as_py())

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        for part in blocks(len(self)):
            yield from self._values.take(pa.array(self._rows[part])).to_pylist()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as long as a release

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:
        found = self._values.take(pa.array(self._rows))
        return found.cast(type or pa.string())

    def take(self, rows: NDArray[np.int64]) -> Texts:
        """The texts at some of these rows."""
        return Texts(self._values, self._rows[rows])


def texts_of(column: pa.ChunkedArray) -> Sequence[str]:
    """The texts of a column without nulls, to be held: see the module.

    Raises:
        DiskFull: the temporary folder has no room for them.
    """
    if len(column) < MANY:
        return tuple(column.to_pylist())
    schema = pa.schema([("text", pa.large_string())])
    handle, path = tempfile.mkstemp(prefix="routeyard-texts-")
    try:
        with os.fdopen(handle, "wb") as file, pa.ipc.new_file(file, schema) as writer:
            whole = pc.cast(column, pa.large_string()).combine_chunks()
            writer.write_batch(pa.record_batch([whole], schema=schema))
        found = pa.ipc.open_file(pa.memory_map(path)).get_batch(0).column(0)
    except OSError as error:
        raise no_room(column.nbytes, "texts", error) from error
    finally:
        os.unlink(path)  # the mapping stays until nobody holds it
    return Texts(found, np.arange(len(found)))


def some(texts: Sequence[str], rows: NDArray[np.int64]) -> Sequence[str]:
    """Texts at some rows; none of none."""
    if isinstance(texts, Texts):
        return texts.take(rows)
    return tuple(texts[i] for i in rows) if texts else ()


def together(first: Sequence[str], second: Sequence[str]) -> Sequence[str]:
    """Texts, then others."""
    if isinstance(first, Texts) or isinstance(second, Texts):
        arrays: Any = [pa.array(part, pa.large_string()) for part in (first, second)]
        return texts_of(pa.chunked_array(arrays))
    return tuple(first) + tuple(second)
