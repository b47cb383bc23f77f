"""Embeddings as one array, read a row group at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.row_groups import column_batches, positions_within
from routeyard.pipelines.matrix.memmap import allocate
from routeyard.schemas import StoredTable


def encoder_vectors(
    embeddings: pa.Table | StoredTable | None, query_ids: pa.Array, encoder: str | None
) -> Vectors | None:
    """(n, d) vectors of one encoder in the order of the ids; None without any embeddings.

    Args:
        encoder: the first name in order when None.

    Raises:
        BadInput: a query has no vector, or two; vectors differ in length, or are not finite.
    """
    chosen = encoder or first_encoder(embeddings)
    if embeddings is None or chosen is None or not embeddings.num_rows:
        return None
    found = np.zeros(len(query_ids), dtype=bool)
    vectors = None
    for part in column_batches(embeddings, ["query_id", "encoder", "vector"]):
        own = part.filter(pc.equal(part.column("encoder").cast(pa.string()), chosen))
        if not own.num_rows:
            continue
        at = positions_within(own.column("query_id"), query_ids)
        flat = _flat(own.column("vector"), chosen)
        if vectors is None:
            vectors = allocate((len(query_ids), flat.shape[1]), np.float32)
        here = at[at >= 0]
        if flat.shape[1] != vectors.shape[1]:
            raise _wrong(chosen, "of different lengths")
        if found[here].any() or len(np.unique(here)) < len(here):
            raise _wrong(chosen, "two for one query")
        vectors[here] = flat[at >= 0]
        found[here] = True
    if not found.all():
        names = ", ".join(sorted(_names(embeddings)))
        raise BadInput(
            f"encoder {chosen!r} has embeddings for {int(found.sum())} of {len(query_ids)} queries",
            next_step=f"known encoders: {names}; embed the rest, or pass none",
        )
    return vectors


def first_encoder(embeddings: pa.Table | StoredTable | None) -> str | None:
    """The encoder that is taken when none is named: the first name in order; None without any."""
    return min(_names(embeddings), default=None) if embeddings is not None else None


def _flat(column: pa.ChunkedArray, encoder: str) -> Vectors:
    """(rows, d) numbers; a vector of another length would give its neighbours' to the next."""
    lengths = pc.list_value_length(column)
    least, most = pc.min_max(lengths).as_py().values()
    if lengths.null_count or least != most:
        raise _wrong(encoder, "of different lengths")
    flat: Vectors = column.flatten().to_numpy(zero_copy_only=False)
    if not most or not np.isfinite(flat).all():
        raise _wrong(encoder, "that are empty or not finite")
    return flat.reshape(len(lengths), most)


def _wrong(encoder: str, what: str) -> BadInput:
    return BadInput(
        f"encoder {encoder!r} has vectors {what}",
        next_step="give each query one vector of finite numbers, all of one length",
    )


def width_of(embeddings: StoredTable) -> int:
    """Numbers in a vector of a file, from its footer; 0 without any."""
    about = pq.read_metadata(embeddings.path)
    for group in map(about.row_group, range(about.num_row_groups)):
        if group.num_rows:
            chunks = map(group.column, range(group.num_columns))
            vector = next(chunk for chunk in chunks if chunk.path_in_schema.startswith("vector"))
            return int(vector.num_values // group.num_rows)
    return 0


def _names(embeddings: pa.Table | StoredTable) -> set[str]:
    names: set[str] = set()
    for part in column_batches(embeddings, ["encoder"]):
        names.update(part.column("encoder").unique().to_pylist())
    return names
