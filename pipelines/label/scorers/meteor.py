"""`meteor`: unigram alignment by word, stem and synonym, with a penalty for disorder.

Banerjee & Lavie 2005 with the parameters of Lavie & Agarwal 2007 that NLTK
uses: α = 0.9, β = 3, γ = 0.5. Stems are Porter's; synonyms are words of a
common synset of WordNet 3.1 (see `synonyms`). The version says which resource
was there: `8+wordnet3.1`, or `8+stem` for exact and stem matches only.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from routeyard.pipelines.label.scorers.graded import graded
from routeyard.pipelines.label.scorers.patterns import patterns

# Synonyms from Princeton WordNet 3.1, read from a package that installs offline.
#
# The data file of `nlptoolkit-wordnet` (extra `routeyard[meteor]`) is found by
# its path; none of the package's code is imported or run. Without it there are
# no synonyms, and scorers that want them say so in their version.

_RE = patterns("synonyms")


# WordNet's rules of detachment (morphy), without the exception lists.
_ENDINGS = (
    ("ies", "y"), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
    ("men", "man"), ("es", "e"), ("es", ""), ("s", ""), ("ed", "e"), ("ed", ""), ("ing", "e"),
    ("ing", ""), ("est", ""), ("est", "e"), ("er", ""), ("er", "e"),
)  # fmt: skip


@lru_cache(maxsize=1)
def wordnet_file() -> Path | None:
    """WordNet's data file, None where the extra is not installed."""
    spec = find_spec("WordNet")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder) / "data" / "english_wordnet_version_31.xml"
        if path.is_file():
            return path
    return None


@lru_cache(maxsize=1)
def _synsets() -> dict[str, frozenset[str]]:
    path = wordnet_file()
    if path is None:
        return {}
    result: dict[str, set[str]] = defaultdict(set)
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if synset := _RE["synset"].search(line):
                for word in _RE["word"].findall(synset[2]):
                    result[word.casefold()].add(synset[1])
    return {word: frozenset(ids) for word, ids in result.items()}


@lru_cache(maxsize=65536)
def synsets(word: str) -> frozenset[str]:
    """Ids of the synsets that hold the word or one of its base forms."""
    known = _synsets()
    results = set(known.get(word, ()))
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            results |= known.get(word[: -len(ending)] + replacement, frozenset())
    return frozenset(results)


ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("porter")


@lru_cache(maxsize=65536)
def _stem(word: str) -> tuple[str, ...]:
    return (str(_stemmer().stemWord(word)),)


def _itself(word: str) -> tuple[str, ...]:
    return (word,)


def align(answer: Sequence[str], reference: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of positions, sorted; each word is matched at most once.

    Stages in order: same word, same stem, common synset; within a stage the
    first free occurrence. Linear in the number of words.
    """
    pairs: list[tuple[int, int]] = []
    left = list(range(len(answer)))
    free = set(range(len(reference)))
    stages: tuple[Callable[[str], Iterable[str]], ...] = (_itself, _stem, synsets)
    for keys in stages:
        places: dict[str, deque[int]] = defaultdict(deque)
        for index in sorted(free):
            for key in keys(reference[index]):
                places[key].append(index)
        unmatched = []
        for index in left:
            waiting = (_first(places, key, free) for key in keys(answer[index]))
            place = min((item for item in waiting if item is not None), default=None)
            if place is not None:
                free.discard(place)
                pairs.append((index, place))
            else:
                unmatched.append(index)
        left = unmatched
    return sorted(pairs)


def _first(places: dict[str, deque[int]], key: str, free: set[int]) -> int | None:
    waiting = places.get(key)
    while waiting and waiting[0] not in free:
        waiting.popleft()
    return waiting[0] if waiting else None


def meteor(answer: Sequence[str], reference: Sequence[str]) -> float:
    """METEOR of two token lists, in [0, 1]."""
    pairs = align(answer, reference)
    if not pairs:
        return 0.0
    precision, recall = len(pairs) / len(answer), len(pairs) / len(reference)
    mean = precision * recall / (ALPHA * precision + (1 - ALPHA) * recall)
    chunks = 1 + sum(after != (before[0] + 1, before[1] + 1) for before, after in pairwise(pairs))
    return mean * (1.0 - GAMMA * float((chunks / len(pairs)) ** BETA))


VERSION = "8+wordnet3.1" if wordnet_file() else "8+stem"
SCORER = graded("meteor", VERSION, "METEOR", meteor, threshold=0.5)
