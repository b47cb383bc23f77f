"""What is released, and what its card says in words."""

from __future__ import annotations

from pydantic import Field, model_validator

from schemas.recipe.base import Strict


class Parts(Strict):
    """Questions of one source in train, validation and test, in counts."""

    train: int = Field(default=0, ge=0)
    validation: int = Field(default=0, ge=0)
    test: int = Field(default=0, ge=0)


class Split(Strict):
    """Train, validation and test, seeded; duplicates stay together.

    In shares that add up to 1 (`0.7`), or in counts of questions (`23027`). In
    counts, validation and test are met to the question and train takes what is
    left, up to its count. `sources` gives counts source by source instead.
    """

    scheme: str = "dense"
    train: int | float = Field(default=0.7, ge=0)
    validation: int | float = Field(default=0.1, ge=0)
    test: int | float = Field(default=0.2, ge=0)
    #: Each source's own counts; a source that is not named takes no part.
    sources: dict[str, Parts] = Field(default_factory=dict)
    stratify: bool = True
    seed: int = 0

    @property
    def counts(self) -> Parts | None:
        """The sizes when they are counts; None for shares or counts per source."""
        sizes = (self.train, self.validation, self.test)
        if self.sources or max(sizes) <= 1:
            return None
        return Parts(**dict(zip(Parts.model_fields, map(int, sizes), strict=True)))

    @model_validator(mode="after")
    def _counts_are_whole(self) -> Split:
        sizes = (self.train, self.validation, self.test)
        if max(sizes) > 1 and any(size != int(size) for size in sizes):
            raise ValueError("a split is in shares (0 to 1) or in whole counts, not in both")
        if max(sizes) <= 1 and not self.sources and sum(sizes) > 1 + 1e-9:
            raise ValueError(f"the shares of a split add up to {sum(sizes):g}, more than the whole")
        return self


class ReproducedPaper(Strict):
    """The paper whose benchmark a recipe rebuilds, and what is not as in the paper."""

    title: str
    #: Where it can be read, such as `arXiv:2606.07587`.
    reference: str
    #: Section or table that states the counts.
    section: str | None = None
    differences: list[str] = Field(default_factory=list)


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
    #: Digital object identifier of this version, such as `10.57967/hf/1234`.
    doi: str | None = Field(default=None, pattern=r"^10\.\d{4,9}/\S+$")
    #: The paper this benchmark follows; the card names it and lists the differences.
    paper: ReproducedPaper | None = None
    known_issues: list[str] = Field(default_factory=list)
    datasheet: dict[str, str] = Field(default_factory=dict)
    waivers: list[Waiver] = Field(default_factory=list)
    include_embeddings: bool = False
    #: `zoo.json` of a run of `routeyard zoo run` on the same labels and splits, beside the recipe;
    #: the card then carries its table. Once read, the text of the file.
    zoo: str | None = None
