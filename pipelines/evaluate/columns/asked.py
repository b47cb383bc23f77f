"""The table `queries` as an evaluation reads it: by id, without what it never reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.large.texts import texts_of
from schemas import QUERIES, Stored

#: What is read of a file: not the questions apart from prompts, nor references.
COLUMNS = ("query_id", "source", "task", "domain", "prompt", "choices", "metadata")


def read_asked(stored: Stored) -> pa.Table:
    """The columns of a file of `queries` that an evaluation reads.

    Raises:
        ContractError: a column is missing.
    """
    QUERIES.conform(stored.schema.empty_table(), where=str(stored.path))
    wanted = pa.schema([QUERIES.schema.field(name) for name in COLUMNS])
    return stored.read(COLUMNS).select(COLUMNS).cast(wanted)


def in_order(queries: pa.Table) -> pa.Table:
    """The same rows by id, as most tables have them already."""
    ids = queries.column("query_id")
    before, here = ids.slice(0, max(len(ids) - 1, 0)), ids.slice(1)
    if pc.all(pc.less_equal(before, here)).as_py() is not False:
        return queries
    return queries.take(pc.sort_indices(ids))


def ids_of(queries: pa.Table) -> pa.Array:
    """Ids of the queries as one array."""
    return pa.concat_arrays([pa.array([], pa.string()), *queries.column("query_id").chunks])


def names_of(column: pa.ChunkedArray) -> NDArray[np.str_]:
    """(n,) a column of names that repeat; empty where it is null."""
    encoded = pc.fill_null(column, "").dictionary_encode().unify_dictionaries()
    parts = [np.asarray(chunk.indices.to_numpy()) for chunk in encoded.chunks]
    if not parts:
        return np.array([], dtype=np.str_)
    names = np.array(encoded.chunk(0).dictionary.to_pylist(), dtype=np.str_)
    return np.asarray(names[np.concatenate(parts)])


def sources_of(queries: pa.Table) -> NDArray[np.str_] | None:
    """(n,) dataset of each query; None where the table does not say."""
    return names_of(queries.column("source")) if "source" in queries.column_names else None


def options_of(queries: pa.Table) -> NDArray[np.int64] | None:
    """(n,) number of options of each query; None where the table does not say."""
    if "choices" not in queries.column_names:
        return None
    lengths = pc.fill_null(pc.list_value_length(queries.column("choices")), 0)
    return np.asarray(lengths.to_numpy(), dtype=np.int64)


def metadata_of(queries: pa.Table) -> Sequence[str]:
    """n JSON objects, or none where the table does not say."""
    if "metadata" not in queries.column_names:
        return ()
    said = queries.column("metadata")
    known = pc.and_(pc.is_valid(said), pc.not_equal(said, ""))
    return texts_of(pc.if_else(pc.fill_null(known, False), said, "{}"))
