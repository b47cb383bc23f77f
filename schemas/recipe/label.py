"""How verdicts become labels: the court's policy, per task."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.recipe.base import Strict


class Policy(Strict):
    """Court policy of one task (or of all, as `default`)."""

    rule: Literal["escalate", "majority", "unanimous"] = "escalate"
    #: Scorers after the query's own rule scorer, in order of escalation.
    then: list[str] = Field(default_factory=list)
    escalate_on: Literal["abstain", "not_correct"] | None = None
    unreadable: Literal["incorrect", "null"] = "incorrect"
    #: Score at or above which a graded answer counts as correct.
    threshold: float | None = Field(default=None, ge=0, le=1)


class Label(Strict):
    """Label section of a recipe."""

    default: Policy = Policy()
    tasks: dict[str, Policy] = Field(default_factory=dict)
