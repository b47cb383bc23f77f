"""The pool: which models are asked, at what price."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from schemas.recipe.base import Strict


class Model(Strict):
    """One model. What is not known stays null; it is never invented."""

    model_id: str
    endpoint_model: str | None = None
    provider: str | None = None
    family: str | None = None
    params_b: float | None = Field(default=None, gt=0)
    price_in: float | None = Field(default=None, ge=0)
    price_out: float | None = Field(default=None, ge=0)
    price_date: str | None = None
    price_source: str | None = None
    context_window: int | None = Field(default=None, gt=0)
    simulated: bool = False
    parameters: dict[
        str, str | int | float | bool | list[str] | dict[str, str | int | float | bool | list[str]]
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _price_has_date(self) -> Model:
        if (self.price_in is not None or self.price_out is not None) and not self.price_date:
            raise ValueError(f"model {self.model_id!r} has a price but no 'price_date'")
        return self


class Provider(Strict):
    """An OpenAI-compatible endpoint. The key is read from the environment by name."""

    name: str
    base_url: str
    api_key_env: str | None = None
    price_list: Literal["openrouter"] | None = None


class Pool(Strict):
    """Models in line or from a YAML file, and the providers that serve them."""

    file: str | None = None
    models: list[Model] = Field(default_factory=list)
    providers: list[Provider] = Field(default_factory=list)

    @model_validator(mode="after")
    def _unique(self) -> Pool:
        ids = [model.model_id for model in self.models]
        repeated = sorted({name for name in ids if ids.count(name) > 1})
        if repeated:
            raise ValueError(f"model {repeated[0]!r} stands in the pool twice")
        return self
