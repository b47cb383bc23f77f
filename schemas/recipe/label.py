"""How verdicts become labels: the aggregation policy, per task."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from routeyard.schemas.recipe.verifier import Judge, Verifier
from routeyard.schemas.strict import Strict


class Policy(Strict):
    """Aggregation policy of one task (or of all, as `default`).

    `escalate` asks the rule scorer first, then each of `then` while the step
    says so; `majority`, `unanimous` and `dawid_skene` ask all of them.
    """

    rule: Literal["escalate", "majority", "unanimous", "dawid_skene"] = "escalate"
    """How verdicts become one label: first that decides, majority, only if all agree, or votes
    weighed by the errors that Dawid and Skene's method estimates for each scorer; take that with
    three scorers or more. A label is undecided where neither truth is twice as probable."""
    then: list[str] = Field(default_factory=list)
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
    Default: its own; the build stops where the rule would give a model another accuracy."""
    threshold: float | None = Field(default=None, ge=0, le=1)
    """Score at or above which a graded answer, or a mean over samples, is correct."""

    @model_validator(mode="after")
    def _once_each(self) -> Policy:
        repeated = sorted({name for name in self.then if self.then.count(name) > 1})
        if repeated:
            raise ValueError(f"scorer {repeated[0]!r} is listed in 'then' twice")
        return self


class Label(Strict):
    """Label section of a recipe."""

    default: Policy = Policy()
    """Policy of every task that `tasks` does not name."""
    tasks: dict[str, Policy] = Field(default_factory=dict)
    """Policies by task."""
    trust: Literal["given", "rules"] | None = Field(
        default=None, exclude_if=lambda given: given is None
    )
    """The same as `trust` of every policy that does not say it."""
    verifiers: list[Verifier] = Field(default_factory=list)
    """Served models that `then` may name as `xverify:<name>` and `judge:<name>`."""
    judges: list[Judge] = Field(default_factory=list)
    """Language models that judge answers."""
    run_code_without_isolation: bool = False
    """Accept that `code` runs model-written programs without isolation where the kernel offers
    none. They can then read and write what this user can."""
    code_modules: list[str] = Field(default_factory=list)
    """Third-party modules that programs under test, and their tests, may import; installed by you,
    seen read-only. A program that imports another one is wrong."""

    def policy_of(self, task: str) -> Policy:
        """The policy of a task, with what the section says for all."""
        policy = self.tasks.get(task, self.default)
        return policy.model_copy(update={"trust": policy.trust or self.trust})

    @property
    def opinions(self) -> list[str]:
        """Scorers whose verdicts enter no label."""
        return [f"judge:{judge.name}" for judge in self.judges if not judge.decides]

    @property
    def foreign_prompts(self) -> list[str]:
        """Warnings about xVerify models that are asked with another prompt than theirs."""
        return [said for one in self.verifiers if (said := one.foreign_prompt)]

    @model_validator(mode="after")
    def _unique(self) -> Label:
        for served in (self.verifiers, self.judges):
            names = [one.name for one in served]
            repeated = sorted({name for name in names if names.count(name) > 1})
            if repeated:
                raise ValueError(f"{repeated[0]!r} is listed twice")
        for judge in self.judges:
            listed = {name for one in (self.default, *self.tasks.values()) for name in one.then}
            if not judge.decides and f"judge:{judge.name}" in listed:
                raise ValueError(f"judge {judge.name!r} has 'decides: false', and 'then' names it")
            if judge.kind == "relative" and judge.reference_model is None:
                raise ValueError(f"judge {judge.name!r} of kind 'relative' needs 'reference_model'")
        return self
