"""Served models that are asked about answers: xVerify and judges."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.recipe.base import Name, Strict
from schemas.recipe.collect import Retry
from schemas.recipe.pool import Provider


class ServedModel(Strict):
    """A model that gives verdicts, how it is asked, and what it costs."""

    #: Name after the colon: `xverify:<name>`, `judge:<name>`.
    name: Name = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    provider: Provider
    #: Model name as the endpoint knows it; default: `name`.
    endpoint_model: str | None = None
    #: The prompt: a file beside the recipe, the name of one that comes with Routeyard
    #: (`routerxbench` for ratings, `confidence-driven` for choices), or the text itself.
    template: str | None = None
    max_tokens: int = Field(default=2048, ge=1)
    concurrency: int = Field(default=8, ge=1, le=256)
    timeout_s: float = Field(default=120.0, gt=0)
    retry: Retry = Retry(attempts=3)
    #: Most USD this model may cost over all runs of the benchmark; needs both prices.
    budget_usd: float | None = Field(default=None, gt=0)
    price_in: float | None = Field(default=None, ge=0)
    price_out: float | None = Field(default=None, ge=0)

    @property
    def model(self) -> str:
        return self.endpoint_model or self.name


class Verifier(ServedModel):
    """xVerify behind an OpenAI-compatible endpoint.

    The xVerify models (0.5B-I, 3B-Ia, 8B-I, 9B-C) are licensed CC BY-NC-ND 4.0:
    no commercial use, no changed copies. Their own prompt is theirs too; it can
    be given as `template`.
    """

    temperature: float = 0.1
    top_p: float = 0.7


class Judge(ServedModel):
    """A language model that judges answers.

    `rating`: `lowest` (1 or 0) to 10, correct from `correct_from`. `relative`: correct when rated
    at least as high as `reference_model` on the same query. `reference`: right or
    wrong against the references. `choice`: which of all answers to a query are
    right, asked in two orders.
    """

    kind: Literal["rating", "relative", "reference", "choice"] = "reference"
    reference_model: str | None = None
    lowest: Literal[0, 1] = 1
    correct_from: float = Field(default=7, ge=0, le=10)
    temperature: float = 0.0
    seed: int = 0
