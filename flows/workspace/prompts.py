"""Prompts that are asked beside a benchmark's questions: judges, probes, self-assessment.

Through the same client and ledger as collection, under another purpose: paid
once, resumed after a crash, and never taken for a benchmark's answers.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from routeyard.flows.workspace.shares import open_ledger
from routeyard.pipelines.errors import GateFailed, RecipeError, Retryable, did_you_mean

if TYPE_CHECKING:
    from routeyard.flows.workspace.stage_folders import BuildContext
    from routeyard.pipelines.ledger.attempt import Attempt
    from routeyard.schemas.recipe import Collect, Model, Pool


def model_to_ask(pool: Pool, model_id: str, provider: str | None = None) -> Model:
    """A model of the pool, or one that only a provider of the pool serves.

    Raises:
        RecipeError: the pool does not have it, and no provider is named.
    """
    from routeyard.schemas.recipe import Model

    models = {model.model_id: model for model in pool.models}
    if model_id in models:
        return models[model_id]
    if provider is None:
        raise RecipeError(
            f"the pool has no model {model_id!r} to ask",
            where="pool.models",
            next_step=did_you_mean(model_id, models) + ", or name its 'provider'",
        )
    return Model(model_id=model_id, provider=provider)


def ask_prompts(
    context: BuildContext,
    pool: Pool,
    collect: Collect,
    model: Model,
    prompts: Sequence[str],
    *,
    purpose: str,
    parameters: Mapping[str, Any],
) -> list[Attempt | None]:
    """One attempt per prompt, in order; None where asking again cannot give an answer.

    Args:
        parameters: Added to the model's own.

    Raises:
        RecipeError: no provider of the pool serves the model.
        Retryable: some answers are still missing (an outage, a spent budget): a
            result made without them would be kept as if it were whole.
        GateFailed: they are missing because a key, an address or the model was refused.
    """
    from routeyard.pipelines.calls.budget import BudgetLedger
    from routeyard.pipelines.calls.prompts import ask_prompts as ask_queue
    from routeyard.pipelines.calls.prompts import request_for
    from routeyard.pipelines.calls.request import RequestSettings
    from routeyard.pipelines.collect.settings import provider_of, queue_of, timeouts_of

    provider = provider_of(model, pool)
    settings = RequestSettings.of(
        provider, model.endpoint_model or model.model_id, {**model.parameters, **parameters}
    )
    requests = [request_for(settings, model.model_id, "", text) for text in prompts]
    named = [replace(r, query_id=f"{purpose}:{r.request_hash[:20]}") for r in requests]
    queue = queue_of(model, provider, collect, iter(()), wanted=0)
    with open_ledger(context.root) as ledger:
        results = ask_queue(
            named,
            queue,
            ledger,
            run=uuid.uuid4().hex[:12],
            purpose=purpose,
            retry=collect.retry,
            budget=BudgetLedger(collect.budget, ledger, context.benchmark),
            timeouts=timeouts_of(collect),
            benchmark=context.benchmark,
        )
    if results.missing:
        last = next((one for one in results.answers.values() if not one.final), None)
        unsent = last.error if last else "not sent"
        kind = GateFailed if results.refusal else Retryable
        raise kind(
            f"{results.missing} of {len(set(prompts))} {purpose} questions to {model.model_id!r} "
            f"were not answered: {results.refusal or results.stopped or unsent}",
            where=f"provider {provider.name!r}",
            next_step="run the same command again: what was answered is kept and not paid twice",
        )
    standing = [results.answers[request.request_hash] for request in requests]
    return [attempt if attempt.usable else None for attempt in standing]
