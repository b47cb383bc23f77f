"""Contamination: questions that also occur in other datasets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from routeyard.pipelines.common.errors import RecipeError
from routeyard.pipelines.curate.dedup import normalised_words
from routeyard.pipelines.curate.rule import Curated, Rule, refused, removing


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
    paper) occur in one dataset. Questions of fewer than n words are
    compared by their whole text only.

    Args:
        tables: `queries`; optional `external` with columns `dataset` and `text`.
        against: Sources of the recipe that count as other datasets; their own
            questions are not judged.
        action: `remove` takes contaminated questions away.
    """
    queries = tables["queries"]
    ids, sources, questions = (
        queries.column(name).to_pylist() for name in ("query_id", "source", "question")
    )
    unknown = sorted(set(against) - set(sources))
    if unknown:
        raise refused(
            "contamination",
            f"there is no source {unknown[0]!r} to compare with",
            f"sources: {', '.join(sorted(set(sources)))}",
        )
    if n < 1 or not 0 < overlap <= 1:
        raise RecipeError(
            "n is at least 1 and overlap lies in (0, 1]", where="curate: contamination"
        )
    rows = list(zip(ids, sources, questions, strict=True))
    others = [(source, text) for _, source, text in rows if source in against]
    if "external" in tables:
        columns = (tables["external"].column(c).to_pylist() for c in ("dataset", "text"))
        others += zip(*columns, strict=True)
    ours = {query: normalised_words(text) for query, source, text in rows if source not in against}
    whole, grams = _index(others, ours.values(), n)
    results: list[tuple[str, str, str]] = []
    by_dataset: dict[str, dict[str, int]] = defaultdict(lambda: {"exact": 0, "n_gram": 0})
    for query, words in ours.items():
        if words in whole:
            by_dataset[whole[words]]["exact"] += 1
            results.append((query, "contaminated_exact", f"same text in {whole[words]!r}"))
            continue
        keys = list(_grams(words, n))
        counts = Counter(dataset for key in keys for dataset in grams.get(key, ()))
        # A tie goes to the smaller name.
        dataset = min(counts, key=lambda name: (-counts[name], name), default="")
        share = counts[dataset] / max(len(keys), 1)
        if share >= overlap:
            by_dataset[dataset]["n_gram"] += 1
            detail = f"{share:.0%} of its {n}-grams occur in {dataset!r}"
            results.append((query, "contaminated_n_gram", detail))
    figures: dict[str, Any] = {
        "compared_texts": len(others),
        "contaminated": len(results),
        "by_dataset": {name: by_dataset[name] for name in sorted(by_dataset)},
    }
    away = results if action == "remove" else []
    return removing(tables, "queries", away, rule="contamination", figures=figures)


def _index(
    others: Sequence[tuple[str, str]], ours: Iterable[tuple[str, ...]], n: int
) -> tuple[dict[tuple[str, ...], str], dict[int, set[str]]]:
    """Datasets of whole texts, and of those n-grams that our questions have too.

    Memory is bounded by our n-grams, however large the other datasets are.
    """
    wanted = {gram for words in ours for gram in _grams(words, n)}
    whole: dict[tuple[str, ...], str] = {}
    grams: dict[int, set[str]] = defaultdict(set)
    for dataset, text in others:
        words = normalised_words(text)
        whole[words] = min(dataset, whole.get(words, dataset))
        for gram in wanted.intersection(_grams(words, n)):
            grams[gram].add(dataset)
    return whole, grams


def _grams(words: Sequence[str], n: int) -> Iterable[int]:
    # Hashes of tuples of strings differ between processes, but equality of what
    # the tuples does not; no hash leaves this module.
    return (hash(tuple(words[i : i + n])) for i in range(len(words) - n + 1))


RULE = Rule("contamination", contamination, reads=("external",))
