"""Served models that are asked about answers: xVerify and judges."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from routeyard.schemas.recipe.collect import Retry
from routeyard.schemas.recipe.pool import Provider
from routeyard.schemas.strict import Name, Strict


class ServedModel(Strict):
    """A model that gives verdicts, how it is asked, and what it costs."""

    name: Name = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name after the colon: `xverify:<name>`, `judge:<name>`."""
    provider: Provider
    """Endpoint that serves it."""
    endpoint_model: str | None = None
    """Model name as the endpoint knows it; default: `name`."""
    template: str | None = None
    """The prompt: a file beside the recipe, the name of one that comes with Routeyard
    (`routerxbench` for ratings, `confidence-driven` for choices), or the text itself."""
    max_tokens: int = Field(default=2048, ge=1)
    """Most tokens of one of its answers."""
    parameters: dict[str, Any] = Field(default_factory=dict, exclude_if=lambda given: not given)
    """Further parameters of its requests, in place of those above; a null takes one away, as
    `{max_tokens: null, max_completion_tokens: 2048, temperature: null}` for models that reason."""
    concurrency: int = Field(default=8, ge=1, le=256)
    """Calls in flight at most."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Seconds after which a call has failed."""
    retry: Retry = Retry(attempts=3)
    """When a failed call is asked again."""
    budget_usd: float | None = Field(default=None, gt=0)
    """Most USD this model may cost over all runs of the benchmark; needs both prices."""
    price_in: float | None = Field(default=None, ge=0)
    """USD per million prompt tokens."""
    price_out: float | None = Field(default=None, ge=0)
    """USD per million completion tokens."""

    @property
    def model(self) -> str:
        return self.endpoint_model or self.name


class Verifier(ServedModel):
    """xVerify, or another model that verifies answers, behind an OpenAI-compatible endpoint.

    The xVerify models (0.5B-I, 3B-Ia, 8B-I, 9B-C) are licensed CC BY-NC-ND 4.0:
    no commercial use, no changed copies. Their own prompt is theirs too, so it does not come
    with Routeyard: `template` names the file with it (docs/howto/judges.md says where it is).
    """

    temperature: float = 0.1
    """Sampling temperature."""
    top_p: ClassVar[float] = 0.7
    """Nucleus of the sampling."""

    @property
    def foreign_prompt(self) -> str | None:
        """A warning where an xVerify model is not asked with a prompt of the recipe's own."""
        named = "xverify" in f"{self.name} {self.endpoint_model or ''}".lower()
        if not named or (self.template is not None and "{" in self.template):
            return None
        return (
            f"{self.name!r} is an xVerify model and is asked with another prompt than the one it "
            "was trained on, so its verdicts are not xVerify's: put that prompt into a file and "
            "name it as `template` (docs/howto/judges.md)"
        )


class Judge(ServedModel):
    """A language model that judges answers.

    `rating`: `lowest` (1 or 0) to 10, correct from `correct_from`. `relative`: correct when rated
    at least as high as `reference_model` on the same query. `reference`: right or
    wrong against the references. `choice`: which of all answers to a query are
    right, asked in two orders.
    """

    kind: Literal["rating", "relative", "reference", "choice"] = "reference"
    """What it is asked: a rating, right or wrong, against another model, a choice."""
    reference_model: str | None = None
    """Model whose answer a `relative` judge compares with."""
    decides: bool = Field(default=True, exclude_if=lambda given: given)
    """Whether its verdicts may enter labels. With `false` it is asked about the first answer of
    every model to every question, and its verdicts decide nothing but preferences (rule
    `preference`, basis `judge`)."""
    lowest: Literal[0, 1] = 1
    """Lowest rating of the scale, 0 or 1; the highest is 10."""
    correct_from: float = Field(default=7, ge=0, le=10)
    """Rating from which an answer is correct."""
    temperature: float = 0.0
    """Sampling temperature."""
    seed: int = 0
    """Seed that is sent along."""
