"""Leaks: test questions that are also in train, word for word or as near-duplicates."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.schemas.stored import StoredTable
from routeyard.schemas.withheld import WITHHELD

#: Hash of a text → its mark, of the last texts.
_MARKS: dict[bytes, bytes] = {}
_KEPT = 50_000


def looked_for_duplicates(recipe: Mapping[str, Any]) -> bool:
    """Whether a recipe looks for near-duplicates; else an empty table of them says nothing."""
    rules = recipe.get("curate")  # of a stranger's manifest: any value
    found = rules if isinstance(rules, Sequence) else ()
    return any(isinstance(rule, Mapping) and rule.get("rule") == "dedup" for rule in found)


def same_words(text: str) -> str:
    """A question's words: case and space put aside, in Unicode's composed form.

    Punctuation stays: `2+3` and `2-3` are different questions.

    >>> same_words("What  is\\nA?") == same_words("what is a?")
    True
    """
    return " ".join(unicodedata.normalize("NFC", text).split()).casefold()


def group_of(duplicates: pa.Table) -> dict[str, str]:
    """query_id → its group; what any encoder or threshold links is linked."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for query, group in zip(
        *(duplicates.column(c).to_pylist() for c in ("query_id", "group_id")), strict=True
    ):
        a, b = sorted((root(f"q|{query}"), root(f"g|{group}")))
        parent[b] = a
    return {name[2:]: root(name) for name in list(parent) if name.startswith("q|")}


def marks_of(texts: pa.Array) -> pa.Array:
    """16 bytes for each text, equal where `same_words` are; a null is as empty text."""
    return pa.array([_mark(text or "") for text in texts.to_pylist()], pa.binary(16))


def _mark(text: str) -> bytes:
    """The mark of a text, remembered by the text's own hash: several checks ask the same."""
    asked = _hash(text)
    if (found := _MARKS.get(asked)) is None:
        if len(_MARKS) >= _KEPT:
            _MARKS.clear()
        found = _MARKS[asked] = _hash(same_words(text))
    return found


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def _whole(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array, which may hold more than 2 GB of text."""
    if isinstance(texts, pa.Array):
        return texts.cast(pa.large_string())
    return pa.concat_arrays(
        texts.cast(pa.large_string()).chunks or [pa.array([], pa.large_string())]
    )


def leaked_tests(
    queries: pa.Table | StoredTable, splits: pa.Table, groups: Mapping[str, str] | None
) -> list[dict[str, Any]]:
    """Per scheme: test questions, and how many of them are also in train.

    Args:
        queries: of those on disk only a part is in memory.
        groups: query_id → group of near-duplicates; None when nobody looked, and
            `near_duplicates` is then null.

    Returns:
        Rows of `RESULTS["leaks"]`. `verbatim` counts test questions with the same
        words as a train question, and is null where texts are withheld;
        `near_duplicates` those in a group with one.
    """
    named = queries.read(["query_id"]) if isinstance(queries, StoredTable) else queries
    ids = _whole(named.column("query_id"))
    asks = queries if isinstance(queries, StoredTable) else queries.select(["prompt"])
    parts = asks.batches(["prompt"]) if isinstance(asks, StoredTable) else asks.to_batches()
    marked = [(marks_of(pa.nulls(0, pa.string())), pa.array([], pa.bool_())), *map(_marked, parts)]
    marks, hidden = (pa.concat_arrays(arrays) for arrays in zip(*marked, strict=True))
    kept_back = hidden.to_numpy(zero_copy_only=False)
    asked = splits.column("query_id").cast(ids.type)
    at = pc.fill_null(pc.index_in(asked, value_set=ids), -1).to_numpy()
    found = []
    for scheme in sorted(splits.column("scheme").unique().to_pylist()):
        here = pc.equal(splits.column("scheme"), scheme).to_numpy() & (at >= 0)
        if not here.any():
            continue
        side = splits.column("split")
        test, train = (at[here & pc.equal(side, name).to_numpy()] for name in ("test", "train"))
        near = None
        if groups is not None:
            there = {groups[query] for query in _named(ids, train) if query in groups}
            near = sum(groups.get(query) in there for query in _named(ids, test))
        known = not (kept_back[test].any() or kept_back[train].any())
        among = marks.take(pa.array(train))
        found.append(
            {
                "scheme": scheme,
                "test": len(test),
                "verbatim": _shared(marks.take(pa.array(test)), among) if known else None,
                "near_duplicates": near,
            }
        )
    return found


def _marked(part: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Marks of prompts, and which of them are withheld."""
    prompts = part.column("prompt")
    return marks_of(prompts), pc.equal(prompts, WITHHELD)


def _shared(marks: pa.Array, among: pa.Array) -> int:
    return int(pc.sum(pc.is_in(marks, value_set=among)).as_py() or 0)


def _named(ids: pa.Array, rows: np.ndarray[Any, Any]) -> list[str]:
    names: list[str] = ids.take(pa.array(rows)).to_pylist()
    return names
