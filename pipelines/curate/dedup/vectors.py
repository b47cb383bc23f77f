"""The embedding matrix of a table of queries."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from routeyard.pipelines.curate.dedup.search import row_norms
from routeyard.pipelines.errors import BadInput


def query_vectors(
    tables: Mapping[str, pa.Table], encoder: str | None, *, where: str
) -> tuple[NDArray[np.float32], list[int | None], str]:
    """Vectors in the order of `queries`, characters seen, and the encoder's name.

    Args:
        encoder: Name in the `embeddings` table; None when it holds only one.

    Returns:
        (n, d) float32 (a view where the order already agrees), n numbers of
        characters or None, name.

    Raises:
        BadInput: there is no such encoder, a query has no vector, widths
            differ, or a vector is zero or not finite; queries are named.
    """
    embeddings = tables.get("embeddings")
    if embeddings is None:
        raise BadInput(
            f"{where} needs embeddings, and the release has none",
            where="tables['embeddings']",
            next_step="set the recipe's 'embed' section",
        )
    names = sorted(pc.unique(embeddings.column("encoder")).to_pylist())
    if encoder is None and len(names) > 1:
        raise BadInput(
            f"{where}: the table holds several encoders: {', '.join(names)}",
            next_step="name one of them as 'encoder'",
        )
    name = encoder if encoder is not None else (names[0] if names else "")
    if names and name not in names:
        raise BadInput(
            f"{where}: no embedding by the encoder {name!r}",
            next_step=f"the table holds: {', '.join(names)}",
        )
    if len(names) > 1:
        embeddings = embeddings.filter(pc.equal(embeddings.column("encoder"), name))
    wanted = tables["queries"].column("query_id")
    place = pc.index_in(wanted, embeddings.column("query_id"))
    if place.null_count:
        lacking = wanted.filter(pc.is_null(place)).to_pylist()
        raise BadInput(
            f"{where}: {len(lacking)} querie(s) have no embedding by {name!r}",
            where=", ".join(lacking[:3]),
            next_step="run the embed stage over all queries",
        )
    if not len(wanted):
        return np.empty((0, 1), dtype=np.float32), [], name
    rows = place.to_numpy()
    matrix = _matrix(embeddings.column("vector"), embeddings.column("query_id"), where)
    if not np.array_equal(rows, np.arange(len(matrix))):
        matrix = matrix[rows]
    norms = row_norms(matrix)
    bad = np.flatnonzero(~(norms > 0) | ~np.isfinite(norms))
    if len(bad):
        shown = wanted.take(pa.array(bad[:3])).to_pylist()
        raise BadInput(
            f"{where}: {len(bad)} embedding(s) are zero or not finite",
            where="query " + ", ".join(shown),
            next_step="embed these questions again; an empty text has no direction",
        )
    if "seen_chars" not in embeddings.column_names:
        return matrix, [None] * len(wanted), name
    return matrix, embeddings.column("seen_chars").take(place).to_pylist(), name


def _matrix(column: pa.ChunkedArray, ids: pa.ChunkedArray, where: str) -> NDArray[np.float32]:
    """(n, d) float32; no copy when the column is one chunk."""
    lengths = pc.list_value_length(column)
    width = pc.max(lengths).as_py()
    odd = pc.fill_null(pc.not_equal(lengths, width), True)
    if pc.any(odd).as_py():
        raise BadInput(
            f"{where}: vectors of one encoder differ in width",
            where="query " + ", ".join(ids.filter(odd).to_pylist()[:3]),
            next_step="embed the queries again with one encoder",
        )
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    values = array.flatten()
    if values.type != pa.float32():
        values = values.cast(pa.float32())
    flat: NDArray[np.float32] = values.to_numpy(zero_copy_only=False)
    return flat.reshape(-1, width)
