"""Fingerprint of what a table says, whatever wrote it and however it is chunked."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SLICE = 65_536


def content(table: pa.Table, *, without: Collection[str] = ()) -> str:
    """SHA-256 over names, types and values of a table, in row order.

    Rows are hashed in slices of fixed size, so the chunks of the table do not
    matter; null and NaN are kept apart from every value.
    """
    digest = hashlib.sha256()
    columns = [name for name in table.column_names if name not in without]
    for name in columns:
        digest.update(f"{name}:{table.schema.field(name).type};".encode())
    for start in range(0, table.num_rows, _SLICE):
        part = table.slice(start, _SLICE)
        for name in columns:
            _update(digest, part.column(name).combine_chunks())
    return digest.hexdigest()


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
