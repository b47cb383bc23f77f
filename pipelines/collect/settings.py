"""How the models of a pool are asked: provider, parameters, limits, and a budget that can hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from routeyard.pipelines.calls.model_queue import ModelQueue
from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.calls.request import Request, RequestSettings
from routeyard.pipelines.calls.wire.timeouts_and_sizes import Timeouts
from routeyard.pipelines.errors import RecipeError, did_you_mean
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Model, Pool, Provider


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


def timeouts_of(collect: Collect) -> Timeouts:
    """Seconds for which a recipe waits for a server."""
    wire = collect.wire
    return Timeouts(wire.connect_s, wire.first_byte_s, wire.idle_s, collect.deadline_s)


def queue_of(
    model: Model,
    provider: Provider,
    collect: Collect,
    requests: Iterator[Request],
    *,
    wanted: int,
    before: int = 0,
) -> ModelQueue:
    """Requests of a model with its limits and its price."""
    return ModelQueue(
        model_id=model.model_id,
        provider=provider,
        requests=requests,
        wanted=wanted,
        before=before,
        limits=model.limits or collect.limits,
        price=Price.of_model(model),
        max_tokens=model.context_window,
        unanswered_after=collect.unanswered.after,
        tokens_per_word=collect.metering.tokens_per_word,
        judged_after=collect.metering.min_answers,
    )


def model_notes(models: Iterable[Model]) -> dict[str, str]:
    """Notes of the pool's entries, so that a ledger can be audited without its recipe."""
    return {f"model:{model.model_id}": model.model_dump_json() for model in models}


def check_names(models: Iterable[Model], collect: Collect) -> None:
    """Every model that the budget bounds is one of the pool.

    Raises:
        RecipeError: one is not, so its bound would bind nobody.
    """
    known = [model.model_id for model in models]
    for model_id in sorted(set(collect.budget.models) - set(known)):
        raise RecipeError(
            f"the budget bounds the model {model_id!r}, which the pool does not have",
            where="collect.budget.models",
            next_step=did_you_mean(model_id, known),
        )


def check_model(model: Model, collect: Collect) -> None:
    """A hard budget needs a worst case, and that needs prices and a token limit."""
    if not collect.budget.is_set:
        return
    where = f"pool.models, {model.model_id}"
    if model.price_in is None or model.price_out is None:
        raise RecipeError(
            f"a budget is set, and the price of {model.model_id!r} is not known",
            where=where,
            next_step="give 'price_in', 'price_out' and 'price_date', or take the budget away",
        )
    limits = (*collect.parameters, *model.parameters)
    if (
        collect.max_tokens is None
        and model.context_window is None
        and not {"max_tokens", "max_completion_tokens"} & set(limits)
    ):
        raise RecipeError(
            f"a budget is set, and the longest answer of {model.model_id!r} is not known",
            where=where,
            next_step="set 'collect.max_tokens' or the model's 'context_window'",
        )
