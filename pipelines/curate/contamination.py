"""Contamination: questions that also stand in other datasets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from pipelines.curate.dedup.unread_text import normalised_words
from pipelines.curate.rule import Curated, Rule, removals
from pipelines.errors import RecipeError


def contamination(
    tables: Mapping[str, pa.Table],
    *,
    against: Sequence[str] = (),
    n: int = 13,
    overlap: float = 0.8,
    action: Literal["report", "remove"] = "report",
) -> Curated:
    """Exact-text and n-gram overlap with other datasets.

    A question is contaminated when its normalised text equals one of another
    dataset, or when at least `overlap` of its word n-grams (13 as in the GPT-3
    paper) stand in one dataset. Questions of fewer than n words are
    compared by their whole text only.

    Args:
        tables: `queries`; optional `external` with columns `dataset` and `text`.
        against: Sources of the recipe that count as other datasets; their own
            questions are not judged.
        action: `remove` takes contaminated questions away.
    """
    queries = tables["queries"]
    ids = queries.column("query_id").to_pylist()
    sources = queries.column("source").to_pylist()
    questions = queries.column("question").to_pylist()
    unknown = sorted(set(against) - set(sources))
    if unknown:
        raise RecipeError(
            f"there is no source {unknown[0]!r} to compare with",
            where="curate: contamination",
            next_step=f"sources: {', '.join(sorted(set(sources)))}",
        )
    if n < 1 or not 0 < overlap <= 1:
        raise RecipeError(
            "n is at least 1 and overlap lies in (0, 1]", where="curate: contamination"
        )
    others: list[tuple[str, str]] = [
        (source, text) for source, text in zip(sources, questions, strict=True) if source in against
    ]
    if "external" in tables:
        external = tables["external"]
        others += zip(
            external.column("dataset").to_pylist(), external.column("text").to_pylist(), strict=True
        )
    ours = [
        (query, normalised_words(text))
        for query, source, text in zip(ids, sources, questions, strict=True)
        if source not in against
    ]
    elsewhere = _Elsewhere.of(others, (words for _, words in ours), n)
    found: list[tuple[str, str, str]] = []
    by_dataset: dict[str, dict[str, int]] = defaultdict(lambda: {"exact": 0, "n_gram": 0})
    for query, words in ours:
        dataset, share = elsewhere.of_words(words)
        if share is None and dataset:
            by_dataset[dataset]["exact"] += 1
            found.append((query, "contaminated_exact", f"same text in {dataset!r}"))
        elif share is not None and share >= overlap:
            by_dataset[dataset]["n_gram"] += 1
            detail = f"{share:.0%} of its {n}-grams stand in {dataset!r}"
            found.append((query, "contaminated_n_gram", detail))
    gone = {key for key, _, _ in found} if action == "remove" else set()
    stay = pa.array([query not in gone for query in ids], pa.bool_())
    figures: dict[str, Any] = {
        "compared_texts": len(others),
        "contaminated": len(found),
        "by_dataset": {name: by_dataset[name] for name in sorted(by_dataset)},
    }
    return Curated(
        kept={"queries": queries.filter(stay)},
        removed=removals("curate.contamination", "query", found if gone else []),
        figures=figures,
    )


@dataclass(frozen=True)
class _Elsewhere:
    """Texts of other datasets: whole ones, and those of their n-grams that ours have too."""

    whole: Mapping[tuple[str, ...], str]
    grams: Mapping[int, set[str]]
    n: int

    @classmethod
    def of(
        cls, others: Sequence[tuple[str, str]], ours: Iterable[tuple[str, ...]], n: int
    ) -> _Elsewhere:
        # Memory is bounded by our n-grams, however large the other datasets are.
        wanted = {gram for words in ours for gram in _grams(words, n)}
        whole: dict[tuple[str, ...], str] = {}
        grams: dict[int, set[str]] = defaultdict(set)
        for dataset, text in others:
            words = normalised_words(text)
            whole[words] = min(dataset, whole.get(words, dataset))
            for gram in _grams(words, n):
                if gram in wanted:
                    grams[gram].add(dataset)
        return cls(whole, grams, n)

    def of_words(self, words: tuple[str, ...]) -> tuple[str, float | None]:
        """(dataset, largest share of n-grams), or (dataset, None) where the whole text stands."""
        if words in self.whole:
            return self.whole[words], None
        return _largest(list(_grams(words, self.n)), self.grams)


def _grams(words: Sequence[str], n: int) -> Iterable[int]:
    # Hashes of tuples of strings differ between processes, but equality of what
    # they stand for does not; nothing of them leaves this function's caller.
    return (hash(tuple(words[i : i + n])) for i in range(len(words) - n + 1))


def _largest(keys: Sequence[int], grams: Mapping[int, set[str]]) -> tuple[str, float]:
    counts: dict[str, int] = defaultdict(int)
    for key in keys:
        for dataset in grams.get(key, ()):
            counts[dataset] += 1
    if not counts:
        return "", 0.0
    dataset = min(counts, key=lambda name: (-counts[name], name))
    return dataset, counts[dataset] / len(keys)


RULE = Rule("contamination", contamination, reads=("external",))
