"""Questions that are one for a split: of one group, equal or near-equal in words, or duplicates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from routeyard.schemas.leaks import marks_of
from routeyard.schemas.near import GROUP, same_question

#: What stays together besides groups and the rule's duplicates: near-equal texts and equal ones,
#: equal ones, or nothing.
Together = Literal["near", "equal", "group"]


def group_names(queries: pa.Table) -> list[str | None]:
    """Value of `fields.group` of each question; None where it has none."""
    if "metadata" not in queries.column_names:
        return [None] * queries.num_rows
    texts = queries.column("metadata").to_pylist()
    found = (json.loads(text).get(GROUP) if text and GROUP in text else None for text in texts)
    return [None if one is None else str(one) for one in found]


def one_question(
    queries: pa.Table, duplicates: pa.Table | None, together: Together = "near"
) -> dict[str, str]:
    """query_id → the smallest id of the questions that are one with it.

    Args:
        queries: QUERIES; without `prompt` nothing is known of texts.
        duplicates: groups of the rule `dedup`; overlapping groups are one.
    """
    ids: list[str] = queries.column("query_id").to_pylist()
    parent = {query: query for query in ids}
    _join(parent, zip(ids, group_names(queries), strict=True))
    if duplicates is not None:
        columns = (duplicates.column(name).to_pylist() for name in ("query_id", "group_id"))
        _join(parent, ((q, g) for q, g in zip(*columns, strict=True) if q in parent))
    if together != "group" and "prompt" in queries.column_names:
        texts = queries.column("prompt").combine_chunks()
        marks = np.asarray(marks_of(texts).dictionary_encode().indices).astype(np.int64)
        groups = same_question(texts.to_pylist(), marks) if together == "near" else marks
        _join(parent, zip(ids, map(str, groups.tolist()), strict=True))
    return {query: _root(parent, query) for query in ids}


def _join(parent: dict[str, str], named: Iterable[tuple[str, str | None]]) -> None:
    """Join the questions that have one name; the smallest id names a group."""
    first: dict[str, str] = {}
    for query, name in named:
        if name is None:
            continue
        a, b = _root(parent, query), _root(parent, first.setdefault(name, query))
        parent[max(a, b)] = min(a, b)


def _root(parent: dict[str, str], name: str) -> str:
    while parent[name] != name:
        parent[name] = parent[parent[name]]
        name = parent[name]
    return name


def left_apart(
    splits: pa.Table, together: dict[str, str]
) -> list[tuple[str, int, int, Sequence[str]]]:
    """(scheme, leaked test questions, test questions, some of them) of schemes that leak.

    A test question leaks where one that is joined with it is in train or validation.
    """
    found: list[tuple[str, int, int, Sequence[str]]] = []
    for scheme in sorted(splits.column("scheme").unique().to_pylist()):
        rows = [row for row in splits.to_pylist() if row["scheme"] == scheme]
        seen = {together.get(r["query_id"]) for r in rows if r["split"] in ("train", "validation")}
        test = [row["query_id"] for row in rows if row["split"] == "test"]
        leaked = sorted(query for query in test if together.get(query) in seen - {None})
        if leaked:
            found.append((scheme, len(leaked), len(test), leaked[:5]))
    return found
