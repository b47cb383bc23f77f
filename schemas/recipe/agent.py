"""Questions answered in several steps: an agent that may search before it answers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from routeyard.schemas.strict import Name, Strict


class Search(Strict):
    """The corpus that is searched, by BM25: passages of the questions themselves, or a file."""

    passages: str | None = None
    """Expression over a question's metadata that gives its passages: texts, or pairs of a title and
    a text (or a list of sentences). Those of all questions are one corpus."""
    file: str | None = None
    """JSONL, CSV or Parquet file with the columns `text` and, where there is one, `title`."""
    results: int = Field(default=3, ge=1, le=20)
    """Passages that one search gives."""
    longest: int = Field(default=1200, ge=50)
    """Characters of a passage that are shown."""

    @model_validator(mode="after")
    def _one_corpus(self) -> Search:
        if (self.passages is None) == (self.file is None):
            raise ValueError("'search' needs a corpus: 'passages' or 'file', one of the two")
        return self


class Agent(Strict):
    """How a trajectory goes: at each step the model searches, or answers and ends it."""

    steps: int = Field(default=5, ge=2, le=50)
    """Calls of one trajectory at most; in the last one the model can only answer."""
    calls: Literal["tools", "text"] = "tools"
    """`tools` declares the search as a tool; `text` tells models that know no tools to write a line
    `Search: …`."""
    search: Search
    """What the tool searches in."""


class Relay(Strict):
    """A member of the pool made of two others: one begins, the other takes over."""

    first: Name
    """Model that takes the first steps."""
    steps: int = Field(ge=1)
    """How many it takes."""
    then: Name
    """Model that takes the others."""
