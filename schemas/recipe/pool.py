"""The pool: which models are asked, at what price."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from itertools import product
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from routeyard.schemas.errors import did_you_mean
from routeyard.schemas.recipe.collect import Parameter, RateLimits, Relay
from routeyard.schemas.strict import Name, Strict, once

# Texts of a recipe that look like keys: refused by their place, and never shown.

_KEY = re.compile(
    r"\b(?:sk|pk|rk|xai|pplx|glpat)-[A-Za-z0-9_-]{16,}|\b(?:hf|gsk|r8|gh[pousr])_[A-Za-z0-9]{16,}"
    r"|\bgithub_pat_\w{20,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bxox[abprs]-[\w-]{10,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|\bBearer\s+\S{12,}|-----BEGIN [A-Z ]{0,30}PRIVATE KEY"
)
_HEADER = re.compile(
    r"(?:proxy-)?authorization|(?:x-)?api[-_ ]?key|cookie|password|client[-_]secret"
    r"|access[-_]token",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(r"\$\{?\w*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)", re.IGNORECASE)
#: Keys of a recipe whose `$NAME` is filled in and may be shown as a place.
_PATHS = frozenset({"path", "file", "template", "prices", "tokenizer", "images_in"})
_DEEPEST = 40


def looks_like_a_key(text: str) -> bool:
    """Whether a text holds something in the form of a provider's key."""
    return _KEY.search(text) is not None


def secrets_in(data: Any) -> Iterator[tuple[str, str]]:
    """(place, why) of everything in a recipe that looks like a secret."""
    yield from _walk(data, (), "")


def refuse_secrets(data: Any) -> Any:
    """The data as it is.

    Raises:
        ValueError: something in it looks like a secret; says where, and not what.
    """
    for place, why in secrets_in(data):
        raise ValueError(
            f"{place}: {why}; keys come from the environment: put the key into a variable, and the "
            "variable's name into the provider's 'api_key_env'"
        )
    return data


def check_name(name: str | None) -> str | None:
    """The name of an environment variable.

    Raises:
        ValueError: it is no name, or looks like the key itself.
    """
    if name is None:
        return None
    mixed = all(re.search(kind, name) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or looks_like_a_key(name):
        raise ValueError("'api_key_env' is the name of a variable, not the key itself")
    if mixed and len(name) >= 20:
        raise ValueError("'api_key_env' looks like a key; write the name of the variable it is in")
    return name


def _walk(data: Any, place: tuple[str, ...], key: str) -> Iterator[tuple[str, str]]:
    where = ".".join(place) or "the recipe"
    if len(place) > _DEEPEST:
        return
    if isinstance(data, str):
        if looks_like_a_key(data):
            yield where, "this looks like a key"
        elif key in _PATHS and _SECRET_NAME.search(data):
            yield where, "a path would show the secret that this variable holds"
    elif isinstance(data, dict):
        for name, value in data.items():
            inner = (*place, "(a key)" if looks_like_a_key(str(name)) else str(name))
            if looks_like_a_key(str(name)):
                yield ".".join(inner), "this looks like a key"
            elif _HEADER.fullmatch(str(name)) and isinstance(value, str) and value:
                yield ".".join(inner), "this header holds a secret"
            yield from _walk(value, inner, str(name))
    elif isinstance(data, list | tuple):
        for number, value in enumerate(data):
            yield from _walk(value, (*place, str(number)), key)


# Axes of a model of the pool: one entry that describes every arm it can be asked as.

Axis = Literal["effort", "output_budget", "prompt", "tools", "samples"]
#: What a plain value of an axis sets; `tools` has none.
_SETS = {
    "effort": ("parameters", "reasoning_effort"), "output_budget": ("parameters", "max_tokens"),
    "prompt": ("prompt",), "samples": ("samples",),
}  # fmt: skip
#: Keys of a model that a value of an axis cannot set.
_OWN = ("model_id", "axes", "arm", "relay")
#: Values of an axis: a list, or name → value; a value is plain, or keys of a model.
AxisValues = list[str | int] | dict[Name, str | int | dict[str, Any] | None]
#: More arms of one entry are a mistake.
MOST_ARMS = 1_000


class Arm(Strict):
    """The place of a member of the pool on the axes of the entry that it comes from."""

    of: Name
    """The entry: the model that all its arms are."""
    effort: Name | None = None
    """Name of its effort."""
    effort_level: NonNegativeInt | None = None
    """Place of that effort in its axis, which goes from least to most."""
    prompt: Name | None = None
    """Name of its prompt."""
    tools: Name | None = None
    """Name of its tools."""


def arms_of(model: Model) -> list[Model]:
    """The entry itself, or one member for each combination of the values of its axes.

    Raises:
        ValueError: a value cannot be set, two axes set the same, or there are too many arms.
    """
    if model.axes is None:
        return [model]
    axes = {axis: _values(axis, values) for axis, values in model.axes.items()}
    count = 1
    for axis, values in axes.items():
        count *= len(values)
        if not values:
            raise ValueError(f"model {model.model_id!r}: the axis {axis!r} has no value")
    if count > MOST_ARMS:
        raise ValueError(f"model {model.model_id!r}: its axes make {count:,} arms ({MOST_ARMS:,})")
    return [_arm(model, dict(zip(axes, chosen, strict=True))) for chosen in product(*axes.values())]


def _values(axis: Axis, values: AxisValues) -> list[tuple[int, str, Any]]:
    """(place, name, value) of each value of an axis."""
    pairs = values.items() if isinstance(values, dict) else ((str(item), item) for item in values)
    return [(place, name, value) for place, (name, value) in enumerate(pairs)]


def _arm(model: Model, chosen: dict[Axis, tuple[int, str, Any]]) -> Model:
    said = model.model_dump(exclude_unset=True, exclude={"axes"})
    # All arms are asked of one endpoint, whatever their names are.
    said["endpoint_model"] = model.endpoint_model or model.model_id
    said["parameters"] = dict(model.parameters)
    result: dict[tuple[str, ...], str] = {}
    for axis, (_, name, value) in chosen.items():
        for place, item in _settings(model, axis, name, value):
            if place in result:
                raise ValueError(
                    f"model {model.model_id!r}: the axes {result[place]!r} and {axis!r} both set "
                    f"{'.'.join(place)!r}"
                )
            result[place] = axis
            (said["parameters"] if len(place) == 2 else said)[place[-1]] = item
    names = {axis: name for axis, (_, name, _) in chosen.items()}
    said["model_id"] = "-".join([model.model_id, *names.values()])
    said["arm"] = {"of": model.model_id} | {
        axis: names[axis] for axis in ("effort", "prompt", "tools") if axis in names
    }
    if "effort" in chosen:
        said["arm"]["effort_level"] = chosen["effort"][0]
    return type(model).model_validate(said)


def _settings(model: Model, axis: Axis, name: str, value: Any) -> list[tuple[tuple[str, ...], Any]]:
    """(keys, value) of all that one value of an axis sets."""
    if not isinstance(value, dict):
        if axis not in _SETS:
            raise ValueError(
                f"model {model.model_id!r}: a value of the axis {axis!r} is a mapping of keys of a "
                f"model, such as {{{name}: {{parameters: {{…}}}}}}"
            )
        return [(_SETS[axis], value)]
    if wrong := sorted(set(value) & set(_OWN)):
        raise ValueError(f"model {model.model_id!r}: an axis cannot set {wrong[0]!r}")
    parameters = value.get("parameters") or {}
    return [((key,), item) for key, item in value.items() if key != "parameters"] + [
        (("parameters", key), parameter) for key, parameter in parameters.items()
    ]


_ASKS = ("prompt", "question")
#: Prices of tokens, and keys of what a longer prompt costs.
_PRICES = ("price_in", "price_out", "price_cache_read", "price_cache_write")
LongPrompt = Literal["tokens", "price_in", "price_out", "price_cache_read", "price_cache_write"]


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
    params_b: PositiveFloat | None = None
    """Parameters, in billions."""
    params_source: str | None = None
    """Where that size was read, and when."""
    price_in: NonNegativeFloat | None = None
    """USD per million prompt tokens; null is not known, never free."""
    price_out: NonNegativeFloat | None = None
    """USD per million completion tokens; null is not known, never free."""
    price_date: str | None = None
    """Day on which the prices were read, as 2026-11-01."""
    price_source: str | None = None
    """Where the prices were read."""
    price_cache_read: NonNegativeFloat | None = None
    """USD per million prompt tokens that are read from the provider's cache."""
    price_cache_write: NonNegativeFloat | None = None
    """USD per million prompt tokens that are written to the provider's cache."""
    price_up_to: PositiveInt | dict[LongPrompt, NonNegativeFloat] | None = None
    """Prompt tokens up to which the prices hold. What a longer prompt costs is not known, or is
    what `{tokens: 200000, price_in: 6, price_out: 22.5}` says, for all tokens of the call."""
    context_window: PositiveInt | None = None
    """Tokens of prompt and answer together."""
    simulated: bool = False
    """True for a program that simulates a model."""
    tokenizer: str | None = None
    """Path of a `tokenizer.json`, for exact token counts before anything is sent."""
    image_tokens: NonNegativeInt | None = None
    """Tokens that its provider counts for one image at most, for plans and budgets; 0 for a model
    that reads text only: it is sent a mark in the place of each image."""
    limits: RateLimits | None = None
    """What this model may be asked at once and per minute."""
    samples: int | None = Field(default=None, ge=1, le=1000)
    """Answers asked of this model for each question, in place of `collect.samples`."""
    system: str | None = None
    """System message of this model in place of `collect.system`; empty for none."""
    prompt: str | None = None
    """What this model is asked, where it is not the query's own prompt: a text around `{{ prompt
    }}`, or made of `question`, `choices`, `task`, `domain`, `source`, `metadata`."""
    relay: Relay | None = None
    """With `collect.agent`: the first steps are one model's, the others another's."""
    parameters: dict[str, Parameter] = {}
    """Request parameters of this model alone; null takes a default away."""
    axes: dict[Axis, AxisValues] | None = None
    """Values that make arms of this entry: `effort: [low, medium, high]` gives three members, of
    which each is asked with its own `reasoning_effort`. The others are `output_budget`, `prompt`,
    `tools` and `samples`; values by name may set any keys of a model."""
    arm: Arm | None = None
    """Of which entry with axes this is an arm; written when the axes are read."""

    @field_validator("price_date", mode="before")
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
    def _prices_are_plausible(self) -> Model:
        # The dearest model costs less than 1e-3 a token, the cheapest more than 1e-3 a million.
        for name, price in self.price_columns.items():
            if name.startswith(_PRICES) and price and price < 1e-3:
                raise ValueError(
                    f"model {self.model_id!r}: {name} is {price:g} USD per million tokens; is that "
                    f"the price of one token? Then write {price * 1e6:g}"
                )
        if (self.price_in is not None or self.price_out is not None) and not self.price_date:
            raise ValueError(f"model {self.model_id!r} has a price but no 'price_date'")
        return self

    @property
    def price_columns(self) -> dict[str, Any]:
        """Its prices as columns of `models`."""
        long = self.price_up_to
        dear: dict[Any, Any] = {"tokens": long} if isinstance(long, int) else long or {}
        plain = {name: getattr(self, name) for name in (*_PRICES, "price_date", "price_source")}
        beyond = {f"{name}_beyond": dear.get(name) for name in _PRICES}
        return {**plain, "price_up_to": int(dear["tokens"]) if dear else None, **beyond}

    @field_validator("price_up_to")
    @classmethod
    def _says_from_where(cls, value: Any) -> Any:
        if isinstance(value, dict) and not value.get("tokens", 0) >= 1:
            raise ValueError(
                "write the prompt tokens up to which the other prices hold: {tokens: 200000, …}"
            )
        return value


class Provider(Strict):
    """An OpenAI-compatible endpoint. The key is read from the environment by name."""

    name: Name
    """Name that models refer to."""
    base_url: str
    """Address of an OpenAI-compatible API; `${NAME}` reads the environment."""
    id: str | None = Field(default=None, pattern=r"^[\w.@-]{1,200}$")
    """Identifies it in place of its address: a server that moves keeps its answers by it."""
    api_key_env: str | None = None
    """Environment variable that holds the key; never the key itself."""
    price_list: Literal["openrouter"] | None = None
    """Form of the price list that it publishes."""
    supports_n: bool = False
    """True where one request may ask for `n` answers."""
    trust_cached_tokens: bool = False
    """True where a budget believes its counts of cached tokens. Else only as many cost the cached
    price as an earlier prompt of the run began with; tables always have the counts reported."""
    limits: RateLimits = RateLimits(concurrency=1024)
    """Limits of all its models together."""

    @property
    def id_in_environment(self) -> bool:
        """Whether the environment decides what identifies it."""
        return self.id is None and "$" in self.base_url

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
    models: list[Model] = []
    """The models; an entry with axes describes all its arms."""
    providers: list[Provider] = []
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
        once((model.model_id for model in self.models), "model {} is in the pool twice")
        once((provider.name for provider in self.providers), "provider {} is in the pool twice")
        ids = (provider.id or provider.name for provider in self.providers)
        once(ids, "two providers have the id {} (without 'id', a provider's name may be one)")
        whole = {model.model_id for model in self.models if model.relay is None}
        for model in self.models:
            for name in () if model.relay is None else (model.relay.first, model.relay.then):
                if self.models and name not in whole:
                    raise ValueError(
                        f"model {model.model_id!r} is a relay of {name!r}: "
                        + did_you_mean(name, sorted(whole))
                    )
        return self
