"""What a model is asked beside the question: provider and parameters."""

from __future__ import annotations

from typing import Any

from pipelines.calls.request import RequestSettings
from pipelines.errors import RecipeError, did_you_mean
from schemas.recipe.collect import Collect
from schemas.recipe.pool import Model, Pool, Provider


def provider_of(model: Model, pool: Pool) -> Provider:
    """The provider that serves a model: the one it names, or the only one there is."""
    known = {provider.name: provider for provider in pool.providers}
    if model.provider in known:
        return known[model.provider]
    if len(known) == 1 and model.provider is None:
        return next(iter(known.values()))
    raise RecipeError(
        f"model {model.model_id!r} "
        + (
            f"is served by {model.provider!r}, which 'pool.providers' does not list"
            if model.provider
            else "names no provider"
        ),
        where=f"pool.models, {model.model_id}",
        next_step=did_you_mean(model.provider or "", known)
        if known
        else "add 'providers: [{name: …, base_url: …}]' to the pool",
    )


def settings_of(
    model: Model, provider: Provider, collect: Collect, *, max_tokens: int | None = None
) -> RequestSettings:
    """Everything a model's requests say beside the messages.

    The recipe's parameters, overridden by the model's; a null takes one away.
    """
    parameters: dict[str, Any] = {"seed": collect.seed}
    if collect.temperature is not None:
        parameters["temperature"] = collect.temperature
    if collect.max_tokens is not None:
        parameters["max_tokens"] = collect.max_tokens
    if collect.logprobs:
        parameters["logprobs"] = True
        if collect.top_logprobs is not None:
            parameters["top_logprobs"] = collect.top_logprobs
    parameters |= collect.parameters
    parameters |= model.parameters
    if max_tokens is not None:
        limit = "max_completion_tokens"
        parameters[limit if parameters.get(limit) is not None else "max_tokens"] = max_tokens
    return RequestSettings.of(
        provider,
        model.endpoint_model or model.model_id,
        {name: value for name, value in parameters.items() if value is not None},
    )
