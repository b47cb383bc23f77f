"""The table `queries` as an evaluation reads it: by id, without what it never reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Ints, Names
from routeyard.pipelines.io.row_groups import column_batches
from routeyard.pipelines.matrix.memmap import blocks, take_rows
from routeyard.pipelines.matrix.texts import array_of, texts_of
from routeyard.schemas import QUERIES, StoredTable
from routeyard.schemas.images import IMAGES, PLAIN_MARK, UNSEEN

#: What is read of a file: no references, nor what they are compared by.
COLUMNS = ("query_id", "source", "task", "domain", "question", "prompt", "choices", "metadata")


def read_asked(queries: pa.Table | StoredTable) -> tuple[pa.Array, dict[str, Any]]:
    """Ids of n questions in order, and the fields of `Core` that `queries` holds.

    A file in order is read a row group at a time.

    Raises:
        ContractError: a file lacks a column.
        DiskFull: the temporary folder has no room for the texts.
    """
    if isinstance(queries, StoredTable):
        QUERIES.conform(queries.schema.empty_table(), where=str(queries.path))
    query_ids = texts_of(_column(queries, "query_id"), queries.num_rows)
    ids = array_of(query_ids)
    if not _in_order(ids):
        table = queries.read(COLUMNS) if isinstance(queries, StoredTable) else queries
        return read_asked(table.take(pc.sort_indices(ids)))
    there = set(queries.column_names)
    found: dict[str, Any] = {
        "query_ids": query_ids,
        "tasks": names_of(_column(queries, "task")),
        "domains": names_of(_column(queries, "domain")),
        "prompts": texts_of(_column(queries, "prompt"), queries.num_rows),
    }
    if "source" in there:
        found["sources"] = names_of(_column(queries, "source"))
    if "choices" in there:
        found["options"] = _options(_column(queries, "choices"))
    if {"question", "choices"} <= there:
        found["questions"] = texts_of(_questions(queries), queries.num_rows)
    if "metadata" in there:
        found["metadata"] = texts_of(map(_told, _column(queries, "metadata")), queries.num_rows)
    return ids, found


def unseen_images(metadata: Sequence[str]) -> str:
    """A sentence where questions have images: routers and encoders here read text; else ""."""
    shown = sum(f'"{IMAGES}"' in text for text in metadata)
    if not shown:
        return ""
    return (
        f"{shown:,} of {len(metadata):,} questions have images, which no router saw: encoders here "
        "read texts; only embeddings of your own (`--embeddings`) can hold images."
    )


def _column(queries: pa.Table | StoredTable, name: str) -> Iterable[pa.Array]:
    for part in column_batches(queries, [name]):
        values = part.column(name)
        yield values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _questions(queries: pa.Table | StoredTable) -> Iterator[pa.Array]:
    """Questions with their options in lines below, as `embed.text_of` has them."""
    for part in column_batches(queries, ["question", "choices"]):
        question, choices = part.column("question").cast(pa.string()), part.column("choices")
        whole = pc.binary_join_element_wise(question, pc.binary_join(choices, "\n"), "\n")
        has_options = pc.greater(pc.fill_null(pc.list_value_length(choices), 0), 0)
        asked = pc.if_else(has_options, whole, question)
        # A router of texts sees that there was an image, and not which.
        marked = pc.any(pc.match_substring(asked, "[image:")).as_py()
        yield pc.replace_substring_regex(asked, PLAIN_MARK, UNSEEN) if marked else asked


def _in_order(ids: pa.Array) -> bool:
    return all(
        pc.all(pc.less_equal(ids[part], ids[part.start + 1 : part.stop + 1])).as_py() is not False
        for part in blocks(len(ids) - 1)
    )


def names_of(parts: Iterable[pa.Array]) -> Names:
    """(n,) a column of names that repeat; empty where it is null."""
    chunks = [pc.fill_null(part, "").dictionary_encode() for part in parts]
    if not chunks:
        return np.array([], dtype=np.str_)
    encoded = pa.chunked_array(chunks).unify_dictionaries()
    names = np.array(encoded.chunk(0).dictionary.to_pylist(), dtype=np.str_)
    at = np.concatenate([np.asarray(chunk.indices.to_numpy()) for chunk in encoded.chunks])
    return take_rows(names, at)


def _options(parts: Iterable[pa.Array]) -> Ints:
    """(n,) number of options of each query."""
    lengths = [pc.fill_null(pc.list_value_length(part), 0).to_numpy() for part in parts]
    return np.concatenate(lengths, dtype=np.int64) if lengths else np.array([], dtype=np.int64)


def _told(said: pa.Array) -> pa.Array:
    """JSON objects; an empty one where missing."""
    known = pc.and_(pc.is_valid(said), pc.not_equal(said, ""))
    return pc.if_else(pc.fill_null(known, False), said, "{}")
