"""Fingerprint of what a table says, whatever wrote it and however it is chunked."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.schemas.manifest import MEASURED_COLUMNS

_SLICE = 65_536


class Content:
    """SHA-256 over names, types and values of a table that arrives in parts, in row order.

    Rows are hashed in slices of fixed size, so neither the parts nor their chunks
    matter; null and NaN are kept apart from every value.
    """

    def __init__(self, schema: pa.Schema, *, without: Collection[str] = ()) -> None:
        self._names = [name for name in schema.names if name not in without]
        #: Digests with the columns that enter each of them.
        self._digests = [_started(schema, self._names)]
        self._columns = [frozenset(self._names)]
        self._rest: list[pa.Table] = []
        self._waiting = 0

    def update(self, part: pa.Table) -> None:
        """Hash the slices that are whole; the rest waits for the next part."""
        self._rest.append(part.select(self._names))
        self._waiting += part.num_rows
        if self._waiting < _SLICE:
            return
        table = pa.concat_tables(self._rest)
        whole = table.num_rows // _SLICE * _SLICE
        for start in range(0, whole, _SLICE):
            self._slice(table.slice(start, _SLICE))
        self._rest = [table.slice(whole)]
        self._waiting = table.num_rows - whole

    def hexdigest(self) -> str:
        """The fingerprint; nothing can be added afterwards."""
        self._finish()
        return str(self._digests[0].hexdigest())

    def _finish(self) -> None:
        if self._waiting:
            self._slice(pa.concat_tables(self._rest))
            self._waiting = 0

    def _slice(self, part: pa.Table) -> None:
        for name in self._names:
            wanted = [
                digest
                for digest, columns in zip(self._digests, self._columns, strict=True)
                if name in columns
            ]
            for data in _data(part.column(name).combine_chunks()):
                for digest in wanted:
                    digest.update(data)


class Contents(Content):
    """Both fingerprints of a table, with and without its measured times, in one pass."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        kept = [name for name in self._names if name not in MEASURED_COLUMNS]
        if len(kept) < len(self._names):
            self._digests.append(_started(schema, kept))
            self._columns.append(frozenset(kept))

    @property
    def full(self) -> str:
        return self.hexdigest()

    @property
    def without_times(self) -> str:
        """The same as `full` where nothing was measured."""
        self._finish()
        return str(self._digests[-1].hexdigest())


def content(table: pa.Table, *, without: Collection[str] = ()) -> str:
    """`Content` of a table in memory."""
    found = Content(table.schema, without=without)
    found.update(table)
    return found.hexdigest()


def combine(parts: Mapping[str, str]) -> str:
    """One fingerprint of several named ones, in order of name."""
    digest = hashlib.sha256()
    for name, value in sorted(parts.items()):
        digest.update(f"{name}={value};".encode())
    return digest.hexdigest()


def _started(schema: pa.Schema, names: Collection[str]) -> Any:
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}:{schema.field(name).type};".encode())
    return digest


def _data(values: pa.Array) -> Iterator[Any]:
    """What is hashed of a column: length, which values there are, and the values."""
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else values.combine_chunks()
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.dictionary_decode(), kind.value_type
    yield len(values).to_bytes(8, "little")
    valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    yield np.packbits(valid).tobytes()
    if values.null_count:
        values = values.drop_null()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        yield pc.binary_length(values).cast(pa.int64()).to_numpy().tobytes()
        yield _text_bytes(values.cast(pa.large_binary()))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield pc.list_value_length(values).cast(pa.int64()).to_numpy().tobytes()
        yield from _data(values.flatten())
    elif pa.types.is_fixed_size_list(kind):
        yield from _data(values.flatten())
    elif pa.types.is_boolean(kind):
        yield np.packbits(values.to_numpy(zero_copy_only=False)).tobytes()
    else:
        yield np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).view(np.uint8)


def _text_bytes(values: pa.Array) -> memoryview | bytes:
    if not len(values):
        return b""
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int64)
    first, last = offsets[values.offset], offsets[values.offset + len(values)]
    return memoryview(values.buffers()[2])[int(first) : int(last)]
