"""Synonyms from Princeton WordNet 3.1, read from a package that installs offline.

The data file of `nlptoolkit-wordnet` (extra `routeyard[meteor]`) is found by
its path; none of the package's code is imported or run. Without it there are
no synonyms, and scorers that want them say so in their version.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from routeyard.pipelines.scorers.patterns import patterns

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
    found = find_spec("WordNet")
    for folder in found.submodule_search_locations or () if found else ():
        path = Path(folder) / "data" / "english_wordnet_version_31.xml"
        if path.is_file():
            return path
    return None


@lru_cache(maxsize=1)
def _synsets() -> dict[str, frozenset[str]]:
    path = wordnet_file()
    if path is None:
        return {}
    found: dict[str, set[str]] = defaultdict(set)
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if synset := _RE["synset"].search(line):
                for word in _RE["word"].findall(synset[2]):
                    found[word.casefold()].add(synset[1])
    return {word: frozenset(ids) for word, ids in found.items()}


@lru_cache(maxsize=65536)
def synsets(word: str) -> frozenset[str]:
    """Ids of the synsets that hold the word or one of its base forms."""
    known = _synsets()
    found = set(known.get(word, ()))
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            found |= known.get(word[: -len(ending)] + replacement, frozenset())
    return frozenset(found)
