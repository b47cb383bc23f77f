"""Fingerprint of what a table says, whatever wrote it and however it is chunked."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SLICE = 65_536


class Content:
    """SHA-256 over names, types and values of a table that arrives in parts, in row order.

    Rows are hashed in slices of fixed size, so neither the parts nor their chunks
    matter; null and NaN are kept apart from every value.
    """

    def __init__(self, schema: pa.Schema, *, without: Collection[str] = ()) -> None:
        self._names = [name for name in schema.names if name not in without]
        self._digest = hashlib.sha256()
        for name in self._names:
            self._digest.update(f"{name}:{schema.field(name).type};".encode())
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
        if self._waiting:
            self._slice(pa.concat_tables(self._rest))
            self._waiting = 0
        return self._digest.hexdigest()

    def _slice(self, part: pa.Table) -> None:
        for name in self._names:
            _update(self._digest, part.column(name).combine_chunks())


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


def _update(digest: Any, values: pa.Array) -> None:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else values.combine_chunks()
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.dictionary_decode(), kind.value_type
    digest.update(len(values).to_bytes(8, "little"))
    valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    digest.update(np.packbits(valid).tobytes())
    values = values.drop_null()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        digest.update(pc.binary_length(values).cast(pa.int64()).to_numpy().tobytes())
        digest.update(_text_bytes(values.cast(pa.large_binary())))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        digest.update(pc.list_value_length(values).cast(pa.int64()).to_numpy().tobytes())
        _update(digest, values.flatten())
    elif pa.types.is_fixed_size_list(kind):
        _update(digest, values.flatten())
    elif pa.types.is_boolean(kind):
        digest.update(np.packbits(values.to_numpy(zero_copy_only=False)).tobytes())
    else:
        digest.update(np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).tobytes())


def _text_bytes(values: pa.Array) -> memoryview | bytes:
    if not len(values):
        return b""
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int64)
    first, last = offsets[values.offset], offsets[values.offset + len(values)]
    return memoryview(values.buffers()[2])[int(first) : int(last)]
