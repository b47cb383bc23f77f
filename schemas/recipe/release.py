"""What is released, and what its card says in words."""

from __future__ import annotations

from pydantic import Field

from schemas.recipe.base import Strict


class Split(Strict):
    """Seeded shares of train, validation and test; duplicates stay together."""

    scheme: str = "dense"
    train: float = Field(default=0.7, ge=0, le=1)
    validation: float = Field(default=0.1, ge=0, le=1)
    test: float = Field(default=0.2, ge=0, le=1)
    stratify: bool = True
    seed: int = 0


class Waiver(Strict):
    """A gate that is waived by name, with the reason the card will print."""

    gate: str
    reason: str = Field(min_length=10)


class Release(Strict):
    """Card words and release options."""

    title: str | None = None
    description: str = ""
    license: str = "NOASSERTION"
    languages: list[str] = Field(default_factory=lambda: ["en"])
    tags: list[str] = Field(default_factory=list)
    citation: str | None = None
    known_issues: list[str] = Field(default_factory=list)
    datasheet: dict[str, str] = Field(default_factory=dict)
    waivers: list[Waiver] = Field(default_factory=list)
    include_embeddings: bool = False
