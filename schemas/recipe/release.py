"""What is released, and what its card says in words."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, model_validator

from routeyard.schemas.release import Waiver
from routeyard.schemas.strict import Strict


class Parts(Strict):
    """Questions of one source in train, validation and test, in counts."""

    train: NonNegativeInt = 0
    """Questions (or their share) that routers learn from."""
    validation: NonNegativeInt = 0
    """Questions (or their share) that hyperparameters are chosen on."""
    test: NonNegativeInt = 0
    """Questions (or their share) that routers are measured on."""


class Split(Strict):
    """Train, validation and test, seeded; duplicates stay together.

    In shares that add up to 1 (`0.7`), or in counts of questions (`23027`). In
    counts, validation and test are met to the question and train takes what is
    left, up to its count. `sources` gives counts source by source instead.
    """

    scheme: str = "dense"
    """Name of the scheme."""
    train: int | float = Field(default=0.7, ge=0)
    """Questions (or their share) that routers learn from."""
    validation: int | float = Field(default=0.1, ge=0)
    """Questions (or their share) that hyperparameters are chosen on."""
    test: int | float = Field(default=0.2, ge=0)
    """Questions (or their share) that routers are measured on."""
    sources: dict[str, Parts] = {}
    """Each source's own counts; a source that is not named takes no part."""
    stratify: bool = True
    """Keep the shares of tasks in each part."""
    seed: int = 0
    """Seed of the split."""
    keep_together: Literal["near", "equal", "group"] = "near"

    """What gets one split besides questions of one `fields.group` and duplicates that the rule
    `dedup` found: questions that differ in spelling only and those with equal words (`near`), with
    equal words (`equal`), or nothing more (`group`)."""

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
    """Title of the paper."""
    reference: str
    """Where it can be read, such as `arXiv:2606.07587`."""
    section: str | None = None
    """Section or table that states the counts."""
    differences: list[str] = []
    """Where the recipe differs from the paper, and why."""


class Release(Strict):
    """Card words and release options."""

    title: str | None = None
    """Title of the card."""
    description: str = ""
    """What the benchmark is, in a few sentences."""
    license: str = "NOASSERTION"
    """Licence of the release (SPDX)."""
    languages: list[str] = ["en"]
    """Languages of the questions (ISO 639-1)."""
    tags: list[str] = []
    """Tags of the card."""
    citation: str | None = None
    """BibTeX entry."""
    doi: str | None = Field(default=None, pattern=r"^10\.\d{4,9}/\S+$")
    """Digital object identifier of this version, such as `10.57967/hf/1234`."""
    paper: ReproducedPaper | None = None
    """The paper this benchmark follows; the card names it and lists the differences."""
    known_issues: list[str] = []
    """What readers should know."""
    waivers: list[Waiver] = []
    """Gates that are waived, each with its reason."""
    include_embeddings: bool = False
    """Compute embeddings of the questions and put them into the release."""
    zoo: str | None = None
    """`zoo.json` of a run of `routeyard zoo run` on the same labels and splits, beside the recipe;
    the card then carries its table. Once read, the text of the file."""
