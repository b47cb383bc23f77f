"""Leaks: test questions that also stand in train, word for word or as near-duplicates."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

#: One row per split scheme.
LEAKS_SCHEMA = pa.schema(
    [
        ("scheme", pa.string()),
        ("test", pa.int64()),
        ("verbatim", pa.int64()),
        ("near_duplicates", pa.int64()),
    ]
)


def looked_for_duplicates(recipe: Mapping[str, Any]) -> bool:
    """Whether a recipe looks for near-duplicates; else an empty table of them says nothing."""
    rules: Sequence[Mapping[str, Any]] = recipe.get("curate") or []
    return any(rule.get("rule") == "dedup" for rule in rules)


def same_words(text: str) -> str:
    """A question's words: case and space put aside, in Unicode's composed form.

    Punctuation stays: `2+3` and `2-3` are different questions.

    >>> same_words("What  is\\nA?") == same_words("what is a?")
    True
    """
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).strip().casefold()


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


def leaked_tests(
    queries: pa.Table, splits: pa.Table, groups: Mapping[str, str] | None
) -> list[dict[str, Any]]:
    """Per scheme: test questions, and how many of them also stand in train.

    Args:
        groups: query_id → group of near-duplicates; None when nobody looked, and
            `near_duplicates` is then null.

    Returns:
        Rows of `LEAKS_SCHEMA`. `verbatim` counts test questions with the same
        words as a train question; `near_duplicates` those in a group with one.
    """
    words = dict(
        zip(
            queries.column("query_id").to_pylist(),
            map(same_words, queries.column("prompt").to_pylist()),
            strict=True,
        )
    )
    sides: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in splits.to_pylist():
        if row["query_id"] in words:
            sides[row["scheme"]][row["split"]].append(row["query_id"])
    found = []
    for scheme in sorted(sides):
        test, train = sides[scheme]["test"], sides[scheme]["train"]
        seen = {words[query] for query in train}
        near = None
        if groups is not None:
            there = {groups[query] for query in train if query in groups}
            near = sum(groups.get(query) in there for query in test)
        found.append(
            {
                "scheme": scheme,
                "test": len(test),
                "verbatim": sum(words[query] in seen for query in test),
                "near_duplicates": near,
            }
        )
    return found
