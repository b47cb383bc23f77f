"""The pool: which models are asked, at what price."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from routeyard.schemas.errors import did_you_mean
from routeyard.schemas.recipe.agent import Relay
from routeyard.schemas.recipe.arms import Arm, Axis, AxisValues, arms_of
from routeyard.schemas.recipe.collect import Parameter, RateLimits
from routeyard.schemas.recipe.secrets import check_name, refuse_secrets
from routeyard.schemas.strict import Name, Strict

_ASKS = ("prompt", "question")


def _is_none(given: object) -> bool:
    return given is None


class Model(Strict):
    """One model. What is not known stays null; it is never invented."""

    model_id: Name
    """Name of the model in every table."""
    endpoint_model: str | None = None
    """Its name at the endpoint, where that differs."""
    provider: str | None = None
    """Name of the provider that serves it; the only one when there is one."""
    family: str | None = None
    """Family of the model."""
    params_b: float | None = Field(default=None, gt=0)
    """Parameters, in billions."""
    params_source: str | None = Field(default=None, exclude_if=_is_none)
    """Where that size was read, and when."""
    price_in: float | None = Field(default=None, ge=0)
    """USD per million prompt tokens; null is not known, never free."""
    price_out: float | None = Field(default=None, ge=0)
    """USD per million completion tokens; null is not known, never free."""
    price_date: str | None = None
    """Day on which the prices were read, as 2026-11-01."""
    price_source: str | None = None
    """Where the prices were read."""
    price_cache_read: float | None = Field(default=None, ge=0, exclude_if=_is_none)
    """USD per million prompt tokens that are read from the provider's cache."""
    price_cache_write: float | None = Field(default=None, ge=0, exclude_if=_is_none)
    """USD per million prompt tokens that are written to the provider's cache."""
    price_up_to: int | None = Field(default=None, gt=0, exclude_if=_is_none)
    """Prompt tokens up to which the prices hold; what a longer prompt costs is not known."""
    price_changed: str | None = None
    """Day of the last price change that is known; a price read before it is stale."""
    context_window: int | None = Field(default=None, gt=0)
    """Tokens of prompt and answer together."""
    simulated: bool = False
    """True for a program that simulates a model."""
    tokenizer: str | None = None
    """Path of a `tokenizer.json`, for exact token counts before anything is sent."""
    image_tokens: int | None = Field(default=None, ge=0, exclude_if=_is_none)
    """Tokens that its provider counts for one image at most, for plans and budgets; 0 for a model
    that reads text only: it is sent a mark in the place of each image."""
    limits: RateLimits | None = None
    """What this model may be asked at once and per minute."""
    samples: int | None = Field(default=None, ge=1, le=1000, exclude_if=_is_none)
    """Answers asked of this model for each question, in place of `collect.samples`."""
    system: str | None = Field(default=None, exclude_if=_is_none)
    """System message of this model in place of `collect.system`; empty for none."""
    prompt: str | None = Field(default=None, exclude_if=_is_none)
    """What this model is asked, where it is not the query's own prompt: a text around `{{ prompt
    }}`, or made of `question`, `choices`, `task`, `domain`, `source`, `metadata`."""
    relay: Relay | None = Field(default=None, exclude_if=_is_none)
    """With `collect.agent`: the first steps are one model's, the others another's."""
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    """Request parameters of this model alone; null takes a default away."""
    axes: dict[Axis, AxisValues] | None = Field(default=None, exclude_if=_is_none)
    """Values that make arms of this entry: `effort: [low, medium, high]` gives three members, of
    which each is asked with its own `reasoning_effort`. The others are `output_budget`, `prompt`,
    `tools` and `samples`; values by name may set any keys of a model."""
    arm: Arm | None = Field(default=None, exclude_if=_is_none)
    """Of which entry with axes this is an arm; written when the axes are read."""

    @field_validator("price_date", "price_changed", mode="before")
    @classmethod
    def _is_a_day(cls, value: object) -> object:
        # YAML reads 2026-11-01 without quotes as a date, which is what it means.
        if isinstance(value, date):
            return value.isoformat()[:10]
        if isinstance(value, str):
            try:
                return date.fromisoformat(value).isoformat()
            except ValueError:
                raise ValueError(
                    f"{value!r} is not a day: write it as 2026-11-01, the day the price was read"
                ) from None
        return value

    @field_validator("prompt")
    @classmethod
    def _asks_the_question(cls, text: str | None) -> str | None:
        if text is not None and not any(name in text.partition("{{")[2] for name in _ASKS):
            raise ValueError(
                "'prompt' is a text around '{{ prompt }}' or '{{ question }}': "
                "without either the model would not be asked the question"
            )
        return text

    @model_validator(mode="after")
    def _price_is_per_million(self) -> Model:
        # The dearest model costs less than 1e-3 a token, the cheapest more than 1e-3 a million.
        for name in ("price_in", "price_out", "price_cache_read", "price_cache_write"):
            price = getattr(self, name)
            if price and price < 1e-3:
                raise ValueError(
                    f"model {self.model_id!r}: {name} is {price:g} USD per million tokens; is that "
                    f"the price of one token? Then write {price * 1e6:g}"
                )
        return self

    @model_validator(mode="after")
    def _price_has_date(self) -> Model:
        if (self.price_in is not None or self.price_out is not None) and not self.price_date:
            raise ValueError(f"model {self.model_id!r} has a price but no 'price_date'")
        return self


class Provider(Strict):
    """An OpenAI-compatible endpoint. The key is read from the environment by name."""

    name: Name
    """Name that models refer to."""
    base_url: str
    """Address of an OpenAI-compatible API; `${NAME}` reads the environment."""
    api_key_env: str | None = None
    """Environment variable that holds the key; never the key itself."""
    price_list: Literal["openrouter"] | None = None
    """Form of the price list that it publishes."""
    supports_n: bool = False
    """True where one request may ask for `n` answers."""
    trust_cached_tokens: bool = Field(default=False, exclude_if=lambda given: not given)
    """True where a budget believes its counts of cached tokens. Else only as many cost the cached
    price as an earlier prompt of the run began with; tables always have the counts reported."""
    limits: RateLimits = RateLimits(concurrency=1024)
    """Limits of all its models together."""

    @field_validator("api_key_env")
    @classmethod
    def _is_a_name(cls, name: str | None) -> str | None:
        return check_name(name)

    @field_validator("base_url")
    @classmethod
    def _no_secrets(cls, url: str) -> str:
        if url.startswith("$"):  # read from the environment when the pool is asked
            return url
        # Python takes line breaks out of an address before it looks at it.
        if any(sign.isspace() or not sign.isprintable() for sign in url):
            raise ValueError("'base_url' is one line without spaces, like https://host/v1")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("'base_url' must look like https://host/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError("'base_url' may hold no credentials: name the key in 'api_key_env'")
        return url


class Pool(Strict):
    """Models in line or from a YAML file, and the providers that serve them."""

    file: str | None = None
    """YAML file with models and providers, relative to the recipe."""
    prices: str | None = None
    """Dated price table (YAML, JSON or CSV) for models that state no price."""
    models: list[Model] = Field(default_factory=list)
    """The models; an entry with axes describes all its arms."""
    providers: list[Provider] = Field(default_factory=list)
    """The endpoints that serve them."""

    @model_validator(mode="before")
    @classmethod
    def _no_keys(cls, data: Any) -> Any:
        return refuse_secrets(data)

    @field_validator("models")
    @classmethod
    def _with_arms(cls, models: list[Model]) -> list[Model]:
        return [arm for model in models for arm in arms_of(model)]

    @model_validator(mode="after")
    def _unique(self) -> Pool:
        ids = [model.model_id for model in self.models]
        repeated = sorted({name for name in ids if ids.count(name) > 1})
        if repeated:
            raise ValueError(f"model {repeated[0]!r} is in the pool twice")
        whole = {model.model_id for model in self.models if model.relay is None}
        for model in self.models:
            for name in () if model.relay is None else (model.relay.first, model.relay.then):
                if self.models and name not in whole:
                    raise ValueError(
                        f"model {model.model_id!r} is a relay of {name!r}: "
                        + did_you_mean(name, sorted(whole))
                    )
        names = [provider.name for provider in self.providers]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"provider {doubled[0]!r} is in the pool twice")
        return self
