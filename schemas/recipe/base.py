"""The strict base of every recipe part: unknown keys are refused with a suggestion."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from schemas.errors import did_you_mean


class Strict(BaseModel):
    """A frozen model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in data:
                if key not in cls.model_fields:
                    raise ValueError(
                        f"unknown key {key!r}; {did_you_mean(str(key), cls.model_fields)}"
                    )
        return data
