"""How answers are collected: asked for, or imported as recorded."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from schemas.recipe.base import Strict


class RecordedFields(Strict):
    """Which column of the recorded file says what. `query` matches `source_id`."""

    query: str
    model: str
    text: str | None = None
    sample: str | None = None
    score: str | None = None
    graded_against: str | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    prompt_tokens: str | None = None
    completion_tokens: str | None = None
    cost_usd: str | None = None
    latency_s: str | None = None


class Recorded(Strict):
    """Files of responses that someone already has."""

    path: str
    format: Literal["parquet", "csv", "jsonl"] | None = None
    #: Source whose `source_id`s the file names; needed when a recipe has several sources.
    source: str | None = None
    #: What to do with rows of a model that is not in the pool.
    other_models: Literal["error", "ignore"] = "error"
    fields: RecordedFields


class Collect(Strict):
    """`provider: openai` asks models through their APIs; `recorded` imports."""

    provider: Literal["openai", "recorded"] = "openai"
    recorded: list[Recorded] = Field(default_factory=list)
    samples: int = Field(default=1, ge=1)
    temperature: float | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int = 0
    parameters: dict[str, str | int | float | bool | list[str]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _recorded_given(self) -> Collect:
        if self.provider == "recorded" and not self.recorded:
            raise ValueError("provider 'recorded' needs a 'recorded' list of files")
        return self
