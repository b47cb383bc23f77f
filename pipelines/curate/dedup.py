"""Near-duplicate questions: `rule.py` decides, `search.py` finds all pairs exactly."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import Ints, Vectors
from routeyard.pipelines.common.encoders import text_of, unseen_of
from routeyard.pipelines.curate.rule import Curated, Rule, removing
from routeyard.pipelines.curate.search import (
    Pairs,
    components,
    cosines,
    near_duplicate_pairs,
    query_vectors,
    row_norms,
)
from routeyard.schemas import DUPLICATES
from routeyard.schemas.text import SIMILARITY

# What an encoder did not read: two texts agree only if they agree there too.
#
# An encoder reads so many tokens and no more. Two questions about one long passage
# then have the same vector and are different questions.


def normalised_words(text: str) -> tuple[str, ...]:
    """Words in NFC and lower case; no sign is dropped (√2+√3 is not √2·√3)."""
    return tuple(unicodedata.normalize("NFC", text).casefold().split())


@dataclass(frozen=True, slots=True)
class Unseen:
    """Words of a text, and how many at its end the encoder did not read whole."""

    words: tuple[str, ...]
    unread: int

    @classmethod
    def of(cls, text: str, seen: int | None) -> Unseen:
        """`seen`: characters that were read; None when all of them were."""
        if seen is None or seen >= len(text):
            return cls(normalised_words(text), 0)
        # A word that was cut counts as unread.
        while seen > 0 and not text[seen - 1].isspace():
            seen -= 1
        return cls(normalised_words(text), len(normalised_words(text[seen:])))

    @property
    def tail(self) -> tuple[str, ...]:
        return self.words[len(self.words) - self.unread :]

    def agrees(self, other: Unseen) -> bool:
        """Same last words, as many as the longer unread end has.

        Counting from the end, because one more sign in the part that was read
        moves the cut; and of the longer end, so that a text that stops at the
        cut does not agree with one that goes on.
        """
        longest = max(self.unread, other.unread)
        return _last(self.words, longest) == _last(other.words, longest)


def _last(words: Sequence[str], count: int) -> Sequence[str]:
    return words[len(words) - count :] if count <= len(words) else ("", *words)


# Label conflicts within a group of near-duplicates.


@dataclass(frozen=True, slots=True)
class Conflict:
    """What is contradictory in one group.

    Attributes:
        within: Models that are right on one member and wrong on another.
        across: Two models trade places: one is right where the other is wrong
            on one member, and the other way round on another member.
    """

    within: int
    across: bool


@dataclass(frozen=True, slots=True)
class LabelIndex:
    """Decided labels by query; undecided ones conflict with nothing."""

    by_query: dict[str, dict[str, bool]]

    @classmethod
    def of(cls, labels: pa.Table | None) -> LabelIndex:
        by_query: dict[str, dict[str, bool]] = defaultdict(dict)
        columns = ("query_id", "model_id", "correct")
        if labels is not None:
            for query, model, correct in zip(
                *(labels.column(name).to_pylist() for name in columns), strict=True
            ):
                if correct is not None:
                    by_query[query][model] = correct
        return cls(dict(by_query))

    def count(self, query_id: str) -> int:
        return len(self.by_query.get(query_id, {}))

    def conflict(self, members: Sequence[str]) -> Conflict:
        rows = [self.by_query[member] for member in members if member in self.by_query]
        models = sorted({model for row in rows for model in row})
        if len(rows) < 2 or not models:
            return Conflict(0, False)
        state = np.array([[row.get(model, -1) for model in models] for row in rows], dtype=np.int8)
        state = np.unique(state, axis=0)  # copies with the same labels add nothing
        right = (state == 1).astype(np.float32)
        wrong = (state == 0).astype(np.float32)
        within = int((right.any(axis=0) & wrong.any(axis=0)).sum())
        # turned[x, y]: models right on x and wrong on y.
        turned = right @ wrong.T
        return Conflict(within, bool(((turned > 0) & (turned.T > 0)).any()))


# Near-duplicate questions: found exactly, one per group kept, every other explained.


@dataclass(frozen=True, slots=True)
class Groups:
    """Connected components of near-duplicates.

    Attributes:
        label: (n,) component of each row.
        pairs: Pairs of rows at or above the threshold.
        pairs_counted: Those that also agree in what the encoder did not read.
    """

    label: Ints
    pairs: int
    pairs_counted: int

    def members(self) -> list[list[int]]:
        """Rows of each component that has several, in order of their first rows."""
        result: dict[int, list[int]] = defaultdict(list)
        sizes = np.bincount(self.label, minlength=1)
        for row in np.flatnonzero(sizes[self.label] > 1).tolist():
            result[int(self.label[row])].append(row)
        return list(result.values())


def group_rows(
    vectors: Vectors,
    texts: Sequence[str],
    seen: Sequence[int | None],
    *,
    threshold: float,
    compare_unseen: bool = True,
) -> Groups:
    """Components of rows whose vectors are close and whose unread ends agree.

    Args:
        vectors: (n, d) float32.
        texts: n texts, as they were given to the encoder.
        seen: Characters of each text the encoder read; None for all.
    """
    whole = [
        not compare_unseen or cut is None or cut >= len(text)
        for text, cut in zip(texts, seen, strict=True)
    ]
    pairs = near_duplicate_pairs(vectors, threshold, np.array(whole, dtype=bool))
    return join(pairs, texts, seen, compare_unseen=compare_unseen)


def join(
    pairs: Pairs,
    texts: Sequence[str],
    seen: Sequence[int | None],
    *,
    compare_unseen: bool = True,
) -> Groups:
    """Components of `pairs` after the check of what the encoder did not read."""
    n, result = len(pairs.first), pairs.count()
    touched = np.flatnonzero(np.bincount(pairs.first, minlength=n) > 1).tolist()
    members: dict[int, list[int]] = {head: [] for head in touched}
    for row in np.flatnonzero(np.isin(pairs.first, touched)).tolist():
        members[int(pairs.first[row])].append(row)

    # Copies of a vector were cut at the same token, so their unread ends agree
    # exactly when they are equal: each class falls into cells in linear time.
    cells: dict[int, list[list[int]]] = {}
    ends: dict[int, Unseen] = {}

    def cells_of(head: int) -> list[list[int]]:
        if head not in cells:
            by_tail: dict[object, list[int]] = defaultdict(list)
            for row in members.get(head, [head]):
                if compare_unseen:
                    ends[row] = Unseen.of(texts[row], seen[row])
                by_tail[ends[row].tail if compare_unseen else None].append(row)
            cells[head] = list(by_tail.values())
        return cells[head]

    left = pairs.joined.left.tolist()
    right = pairs.joined.right.tolist()
    counted = pairs.joined.pairs
    for head in touched:
        for cell in cells_of(head):
            counted += len(cell) * (len(cell) - 1) // 2
            left += [cell[0]] * (len(cell) - 1)
            right += cell[1:]
    for a, b in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        for item in cells_of(a):
            for other in cells_of(b):
                # Members of a cell have one tail but may differ before it, so
                # the first of each decides for the rest up to its own cut.
                if not compare_unseen or ends[item[0]].agrees(ends[other[0]]):
                    counted += len(item) * len(other)
                    left.append(item[0])
                    right.append(other[0])
    label = components(n, np.array(left, dtype=np.int64), np.array(right, dtype=np.int64))
    return Groups(label, result, counted)


def dedup(
    tables: Mapping[str, pa.Table],
    *,
    threshold: float = SIMILARITY,
    keep: Literal["representative", "all"] = "representative",
    representative: Literal["first", "longest", "most_labelled"] = "first",
    prefer_sources: Sequence[str] = (),
    encoder: str | None = None,
    compare_unseen: bool = True,
) -> Curated:
    """One question per group of near-duplicates, and the `duplicates` table.

    Groups are connected components of pairs with cosine ≥ `threshold` (RouterBench+
    uses 0.999). A pair counts only when the texts also agree, in normalised words,
    in what the encoder did not read.

    Args:
        tables: `queries`, `embeddings`; `labels` for conflicts, when there.
        threshold: δ in (0, 1].
        keep: `all` removes nothing and only fills `duplicates`.
        representative: Who represents a group: the `first` in the order of
            `queries`, the `longest` text, or the one with most labels; of equals among
            the latter two the one with the lowest `query_id`, whatever the order.
        prefer_sources: Sources whose questions go first, best first.
        encoder: Which embeddings to use; needed when there are several.
        compare_unseen: False trusts the vectors alone, also of truncated texts.

    Raises:
        BadInput: an embedding is missing, zero or not finite.
    """
    queries = tables["queries"]
    vectors, seen, name = query_vectors(tables, encoder, where="dedup")
    ids, sources, questions, choices = (
        queries.column(column).to_pylist()
        for column in ("query_id", "source", "question", "choices")
    )
    # Questions about other images are other questions: no encoder of texts saw those.
    asked = zip(questions, choices, strict=True)
    texts = [text_of(*item) + unseen_of(*item) for item in asked]
    groups = group_rows(vectors, texts, seen, threshold=threshold, compare_unseen=compare_unseen)
    labels = LabelIndex.of(tables.get("labels"))
    rank = {source: place for place, source in enumerate(prefer_sources)}
    by_merit: dict[str, Callable[[int], tuple[int, str]]] = {
        "first": lambda row: (row, ""),
        "longest": lambda row: (-len(texts[row]), ids[row]),
        "most_labelled": lambda row: (-labels.count(ids[row]), ids[row]),
    }
    merit = by_merit[representative]

    by_group = groups.members()
    norms = row_norms(vectors)
    rows: list[dict[str, Any]] = []
    away: list[tuple[str, str, str]] = []
    conflicts: list[Conflict] = []
    across_sources: list[list[str]] = []
    for members in by_group:
        chosen = min(members, key=lambda row: (rank.get(sources[row], len(rank)), merit(row)))
        conflict = labels.conflict([ids[row] for row in members])
        conflicts.append(conflict)
        across_sources.append(sorted({sources[row] for row in members}))
        to_chosen = cosines(vectors, norms, np.array(members), np.full(len(members), chosen))
        smallest = min(ids[row] for row in members)
        for row, similarity in zip(members, to_chosen.tolist(), strict=True):
            rows.append(
                {
                    "query_id": ids[row],
                    "encoder": name,
                    "threshold": threshold,
                    "group_id": smallest,
                    "representative": row == chosen,
                    "similarity": 1.0 if row == chosen else min(similarity, 1.0),
                    "label_conflict": conflict.within > 0,
                }
            )
            if row != chosen and keep == "representative":
                detail = (
                    f"near-duplicate of {ids[chosen]} (cosine {similarity:.6f} by {name}), "
                    f"in a group of {len(members)}"
                )
                away.append((ids[row], "near_duplicate", detail))
    rows.sort(key=lambda row: (row["group_id"], not row["representative"], row["query_id"]))
    pairs = Counter(pair for names in across_sources for pair in combinations(names, 2))
    return removing(
        tables,
        "queries",
        away,
        rule="dedup",
        added={"duplicates": DUPLICATES.from_rows(rows, where="dedup")},
        figures={
            "encoder": name,
            "threshold": threshold,
            "queries": len(ids),
            "truncated": sum(value is not None for value in seen),
            "pairs_found": groups.pairs,
            "pairs_differing_unseen": groups.pairs - groups.pairs_counted,
            "pairs_counted": groups.pairs_counted,
            "groups": len(by_group),
            "largest_group": max((len(members) for members in by_group), default=0),
            "removed": len(away),
            "groups_conflict_within_models": sum(item.within > 0 for item in conflicts),
            "groups_conflict_across_models": sum(item.across for item in conflicts),
            "groups_across_sources": sum(len(names) > 1 for names in across_sources),
            "groups_by_source_pair": [
                {"sources": list(pair), "groups": count} for pair, count in sorted(pairs.items())
            ],
        },
    )


RULE = Rule("dedup", dedup, reads=("embeddings", "labels"))
