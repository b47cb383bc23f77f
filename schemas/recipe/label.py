"""How verdicts become labels: the aggregation policy, per task."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from routeyard.schemas.recipe.collect import Retry
from routeyard.schemas.recipe.pool import Provider
from routeyard.schemas.strict import Name, Share, Strict, once

# Served models that are asked about answers: xVerify and judges.


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
    max_tokens: PositiveInt = 2048
    """Most tokens of one of its answers."""
    parameters: dict[str, Any] = {}
    """Further parameters of its requests, in place of ours (for judges `temperature: 0` and
    `seed: 0`, for verifiers `temperature: 0.1` and `top_p: 0.7`); a null takes one away, as
    `{max_tokens: null, max_completion_tokens: 2048, temperature: null}` for models that reason."""
    concurrency: int = Field(default=8, ge=1, le=256)
    """Calls in flight at most."""
    retry: Retry = Retry(attempts=3)
    """When a failed call is asked again."""
    budget_usd: PositiveFloat | None = None
    """Most USD this model may cost over all runs of the benchmark; needs both prices."""
    price_in: NonNegativeFloat | None = None
    """USD per million prompt tokens."""
    price_out: NonNegativeFloat | None = None
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

    `rating`: `lowest` (1 or 0) to 10, correct from 7. `relative`: correct when rated
    at least as high as `reference_model` on the same query. `reference`: right or
    wrong against the references. `choice`: which of all answers to a query are
    right, asked in two orders.
    """

    kind: Literal["rating", "relative", "reference", "choice"] = "reference"
    """What it is asked: a rating, right or wrong, against another model, a choice."""
    reference_model: str | None = None
    """Model whose answer a `relative` judge compares with."""
    decides: bool = True
    """Whether its verdicts may enter labels. With `false` it is asked about the first answer of
    every model to every question, and its verdicts decide nothing but preferences (rule
    `preference`, basis `judge`)."""
    lowest: Literal[0, 1] = 1
    """Lowest rating of the scale, 0 or 1; the highest is 10."""
    correct_from: ClassVar[float] = 7
    """Rating from which an answer is correct."""


class Policy(Strict):
    """Aggregation policy of one task (or of all, as `default`).

    `escalate` asks the rule scorer first, then each of `then` while the step
    says so; `majority`, `unanimous` and `dawid_skene` ask all of them.
    """

    rule: Literal["escalate", "majority", "unanimous", "dawid_skene"] = "escalate"
    """How verdicts become one label: first that decides, majority, only if all agree, or votes
    weighed by the errors that Dawid and Skene's method estimates for each scorer; take that with
    three scorers or more. A label is undecided where neither truth is twice as probable."""
    then: list[str] = []
    """Scorers after the query's own rule scorer, in order of escalation: `xverify:<model>`,
    `judge:<name>`, another rule scorer, or a whole family (`xverify`, `judge`), which means
    all of its scorers in name order."""
    escalate_on: Literal["abstain", "not_correct"] | None = None
    """When the next one is asked. Default: `not_correct` for `em` and `f1` (open questions, where a
    rule often misses a right answer), else `abstain`."""
    unreadable: Literal["incorrect", "null"] = "null"
    """What an answer becomes that no scorer could read: undecided, which leaves bounds open, or
    incorrect, which the card says. Answers that were cut off or refused, and empty ones, are
    incorrect unless an answer was read in them."""
    trust: Literal["given", "rules"] | None = None
    """Whose labels count where a recording holds grades: its own (`given`) or the rule's (`rules`).
    Default: what `default` says, else its own; the build stops where the rule would give a model
    another accuracy."""
    threshold: Share | None = None
    """Score at or above which a graded answer, or a mean over samples, is correct."""

    @model_validator(mode="after")
    def _once_each(self) -> Policy:
        once(self.then, "scorer {} is listed in 'then' twice")
        return self


class Label(Strict):
    """Label section of a recipe."""

    default: Policy = Policy()
    """Policy of every task that `tasks` does not name."""
    tasks: dict[str, Policy] = {}
    """Policies by task."""
    verifiers: list[Verifier] = []
    """Served models that `then` may name as `xverify:<name>` and `judge:<name>`."""
    judges: list[Judge] = []
    """Language models that judge answers."""
    run_code_without_isolation: bool = False
    """Accept that `code` runs model-written programs without isolation where the kernel offers
    none. They can then read and write what this user can."""
    code_modules: list[str] = []
    """Third-party modules that programs under test, and their tests, may import; installed by you,
    seen read-only. A program that imports another one is wrong."""

    def policy_of(self, task: str) -> Policy:
        """The policy of a task, with `trust` of `default` where it does not say it."""
        policy = self.tasks.get(task, self.default)
        return policy.but(trust=policy.trust or self.default.trust)

    @property
    def opinions(self) -> list[str]:
        """Scorers whose verdicts enter no label."""
        return [f"judge:{judge.name}" for judge in self.judges if not judge.decides]

    @property
    def foreign_prompts(self) -> list[str]:
        """Warnings about xVerify models that are asked with another prompt than theirs."""
        return [said for verifier in self.verifiers if (said := verifier.foreign_prompt)]

    @model_validator(mode="after")
    def _unique(self) -> Label:
        once((verifier.name for verifier in self.verifiers), "{} is listed twice")
        once((item.name for item in self.judges), "{} is listed twice")
        for judge in self.judges:
            listed = {name for item in (self.default, *self.tasks.values()) for name in item.then}
            if not judge.decides and f"judge:{judge.name}" in listed:
                raise ValueError(f"judge {judge.name!r} has 'decides: false', and 'then' names it")
            if judge.kind == "relative" and judge.reference_model is None:
                raise ValueError(f"judge {judge.name!r} of kind 'relative' needs 'reference_model'")
        return self
