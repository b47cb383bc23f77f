"""Prompts that are asked beside a benchmark's questions: judges, probes, self-assessment.

Through the same client and ledger as collection, under another purpose: paid
once, resumed after a crash, and never taken for a benchmark's answers.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.workspace.shares import open_ledger
from pipelines.errors import RecipeError, Retryable, did_you_mean

if TYPE_CHECKING:
    from pipelines.ledger.attempt import Attempt
    from schemas.recipe import Model, Recipe


def model_to_ask(recipe: Recipe, model_id: str, provider: str | None = None) -> Model:
    """A model of the pool, or one that only a provider of the pool serves.

    Raises:
        RecipeError: the pool does not have it, and no provider is named.
    """
    from schemas.recipe import Model

    models = {model.model_id: model for model in recipe.pool.models}
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
    recipe: Recipe,
    root: Path,
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
    """
    from pipelines.calls.ask import ask
    from pipelines.calls.lane import Lane
    from pipelines.calls.pricing import Price
    from pipelines.calls.request import CHAT_COMPLETIONS, Request, Settings
    from pipelines.collect.plan import messages, provider_of

    provider = provider_of(model, recipe.pool)
    settings = Settings(
        provider=provider.name,
        endpoint=CHAT_COMPLETIONS,
        endpoint_model=model.endpoint_model or model.model_id,
        parameters={**model.parameters, **parameters},
    )
    wanted = {settings.request_hash(messages(text, None)): text for text in prompts}
    stopped: str | None = None
    with open_ledger(root) as ledger:
        position = ledger.position()
        settled = ledger.settled(list(wanted))
        missing = [
            Request(
                query_id=f"{purpose}:{request_hash[:20]}",
                model_id=model.model_id,
                settings=settings,
                messages=messages(text, None),
                samples=(0,),
                request_hash=request_hash,
            )
            for request_hash, text in wanted.items()
            if (found := settled.get((request_hash, 0))) is None
            or (found.status == "error" and not found.permanent)
        ]
        if missing:
            ledger.remember({f"settings:{settings.settings_hash}": settings.identity.decode()})
            lane = Lane(
                model_id=model.model_id,
                provider=provider,
                requests=iter(missing),
                wanted=len(wanted),
                before=len(wanted) - len(missing),
                limits=model.limits or recipe.collect.limits,
                price=Price(model.price_in, model.price_out, model.price_date, model.price_source),
                max_tokens=model.context_window,
            )
            asked = asyncio.run(
                ask(
                    [lane],
                    ledger,
                    after=position,
                    run=uuid.uuid4().hex[:12],
                    purpose=purpose,
                    retry=recipe.collect.retry,
                    budget=recipe.collect.budget,
                    deadline_s=recipe.collect.deadline_s,
                )
            )
            stopped = asked.stopped
        answers = ledger.answered(list(wanted))
    standing = {request_hash: found.attempt for (request_hash, _), found in answers.items()}
    open_ = [name for name in wanted if name not in standing or not standing[name].final]
    if open_:
        last = standing.get(open_[0])
        raise Retryable(
            f"{len(open_)} of {len(wanted)} {purpose} questions to {model.model_id!r} were not "
            f"answered: {stopped or (last.error if last else 'not sent')}",
            where=f"provider {provider.name!r}",
            next_step="run the same command again: what was answered is kept and not paid twice",
        )
    result: list[Attempt | None] = []
    for text in prompts:
        attempt = standing[settings.request_hash(messages(text, None))]
        result.append(attempt if attempt.usable else None)
    return result
