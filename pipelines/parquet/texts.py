"""Texts that a Parquet file holds as bytes without a name for what they are."""

from __future__ import annotations

import pyarrow as pa


def texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with columns of bytes as texts, where all of them in the batch are UTF-8.

    Some writers say of no column that it holds text; what is read from such a file would be the
    Python of bytes, `b'…'`.
    """
    for at, column in enumerate(batch.columns):
        wanted = _as_text(column.type)
        if wanted != column.type:
            try:
                cast = column.cast(wanted)
            except pa.ArrowInvalid:
                continue  # bytes of something else
            batch = batch.set_column(at, pa.field(batch.schema.names[at], wanted), cast)
    return batch


def _as_text(kind: pa.DataType) -> pa.DataType:
    """The type with texts in place of bytes, in lists and objects too."""
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.string() if pa.types.is_binary(kind) else pa.large_string()
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_as_text(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _as_text(field.type)) for field in kind])
    return kind
