"""The corpus that an agent searches: passages, and BM25 over their words."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.errors import BadInput, RecipeError
from routeyard.pipelines.io import files, named_files
from routeyard.pipelines.mapping.fields import compile_field
from routeyard.schemas.recipe.agent import Search

_WORD = re.compile(r"\w+")
#: Characters of a query that are read.
LONGEST_QUERY = 500


@dataclass(frozen=True, order=True)
class Passage:
    """A text of the corpus; `title` is empty where the text has no title."""

    title: str
    text: str


class Corpus:
    """Passages in a fixed order, searched by BM25 (the `bm25s` library, its Lucene form).

    Equal scores keep the order of the passages, so a search gives the same on every machine.

    Raises:
        BadInput: the library is not installed, or there is no passage.
    """

    def __init__(self, passages: Iterable[Passage], search: Search) -> None:
        try:
            import bm25s
        except ImportError as error:
            raise BadInput(
                f"an agent's search needs the library bm25s ({error})",
                next_step="pip install -c constraints.txt '.[agent]'",
            ) from None
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        self.passages = sorted(set(passages))
        self._search = search
        words = [_words(f"{one.title} {one.text}") for one in self.passages]
        if not any(words):
            raise BadInput(
                "the corpus of the search holds no passage",
                where="collect.agent.search",
                next_step="check 'passages' (or 'file') against the source's columns",
            )
        self._known = {word for found in words for word in found}
        self._bm25 = bm25s.BM25()
        self._bm25.index(words, show_progress=False)

    def find(self, query: str) -> list[Passage]:
        """The best passages that share a word with the query, best first."""
        import numpy as np

        words = [one for one in _words(query[:LONGEST_QUERY]) if one in self._known]
        if not words:
            return []
        scores = self._bm25.get_scores(words)
        best = np.argsort(-scores, kind="stable")[: self._search.results]
        return [self.passages[int(k)] for k in best if scores[k] > 0]

    def shown(self, query: str) -> str:
        """What the tool says: passages with titles, or that none was found."""
        found = self.find(query)
        if not found:
            return "No passage was found. Try other words."
        cut = self._search.longest
        return "\n\n".join(
            f"[{k}] {one.title + ': ' if one.title else ''}{one.text[:cut]}"
            for k, one in enumerate(found, 1)
        )


def corpus_of(queries: pa.Table, search: Search, *, base: Path) -> Corpus:
    """The recipe's corpus: passages of the queries' metadata, or of a file.

    Raises:
        BadInput: there is no passage. RecipeError: the expression fails, or gives something else.
    """
    if search.file is not None:
        return Corpus(_of_file(search.file, base), search)
    assert search.passages is not None
    read = compile_field(search.passages, where="collect.agent.search.passages")
    found: list[Passage] = []
    for text in queries.column("metadata").to_pylist():
        metadata = json.loads(text)
        found += _passages(read(metadata))
    return Corpus(found, search)


def _of_file(path: str, base: Path) -> list[Passage]:
    found = []
    for one in named_files.expand(path, base=base, where="collect.agent.search.file"):
        for row in files.rows(one):
            if not isinstance(row.get("text"), str):
                raise BadInput(
                    "a row of the corpus has no text",
                    where=str(one),
                    next_step="name a file with a column 'text' (and 'title')",
                )
            found.append(Passage(str(row.get("title") or ""), row["text"]))
    return found


def _passages(given: Any) -> list[Passage]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise _no_passages(given)
    found = []
    for one in given:
        if isinstance(one, str):
            found.append(Passage("", one))
        elif isinstance(one, Sequence) and len(one) == 2 and isinstance(one[0], str):
            text = one[1] if isinstance(one[1], str) else "".join(map(str, one[1]))
            found.append(Passage(one[0], text.strip()))
        else:
            raise _no_passages(one)
    return found


def _no_passages(given: Any) -> RecipeError:
    return RecipeError(
        f"'passages' gives {str(given)[:80]!r}",
        where="collect.agent.search",
        next_step="give a list of texts, or of pairs of a title and a text, as in "
        "'{{ zip(context.title, context.sentences) }}'",
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
