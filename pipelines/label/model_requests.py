"""Requests to a verifier or judge: its limits, its budget and the replies that can be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from routeyard.pipelines.calls.budget import BudgetLedger
from routeyard.pipelines.calls.client import Client
from routeyard.pipelines.calls.model_queue import ModelQueue, Transport
from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.calls.prompts import PromptResults, ask_prompts
from routeyard.pipelines.calls.reply import CallFault, ModelReply
from routeyard.pipelines.calls.request import Request, RequestSettings
from routeyard.pipelines.calls.wire.timeouts_and_sizes import Timeouts
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.collect import Budget, RateLimits, Unanswered
from routeyard.schemas.recipe.verifier import ServedModel

#: Characters of an unreadable reply that its error shows.
_SHOWN = 300


def settings_of(served: ServedModel, **parameters: Any) -> RequestSettings:
    """What identifies a request to this model, besides the messages."""
    sent = {"max_tokens": served.max_tokens, **parameters, **served.parameters}
    return RequestSettings.of(
        served.provider, served.model, {k: v for k, v in sent.items() if v is not None}
    )


def ask_model(
    requests: Sequence[Request],
    served: ServedModel,
    ledger: Ledger,
    *,
    run: str,
    purpose: str,
    benchmark: str,
    readable: Callable[[str], bool],
    transport: Callable[..., Transport] = Client,
    send: bool = True,
) -> PromptResults:
    """Ask a verifier or judge what the ledger does not answer yet.

    Args:
        benchmark: Whose budget it is.
        readable: Whether a reply can be used. One that cannot, or that was cut by
            length or by a filter, is asked again, then counts as an error.
        send: False only looks at what the ledger holds.

    Raises:
        BadInput: the key is not set, or a budget is set without both prices.
    """
    price = Price(served.price_in, served.price_out)
    if served.budget_usd is not None and not price.known:
        raise BadInput(
            f"{served.name!r} has a budget but no price, so nothing could be counted",
            where=f"label, {served.name}",
            next_step="give price_in and price_out in USD per million tokens",
        )
    if not requests:
        return PromptResults({})
    name = requests[0].model_id
    budget = BudgetLedger(
        Budget(usd=served.budget_usd),
        ledger,
        f"{benchmark}, {name}",
        settings=[requests[0].settings.settings_hash],
        raise_by=f"budget_usd of {name}",
    )
    queue = ModelQueue(
        model_id=name,
        provider=served.provider,
        requests=iter(()),
        wanted=0,
        limits=RateLimits(concurrency=served.concurrency),
        price=price,
        max_tokens=served.max_tokens,
        unusable=lambda reply: unusable(reply, readable),
        unanswered_after=Unanswered().after,
        transport=transport,
    )
    return ask_prompts(
        requests,
        queue,
        ledger,
        run=run,
        purpose=purpose,
        retry=served.retry,
        budget=budget,
        timeouts=Timeouts(deadline_s=served.timeout_s),
        benchmark=benchmark,
        send=send,
    )


def unusable(reply: ModelReply, readable: Callable[[str], bool]) -> CallFault | None:
    """Reason why a reply has no verdict, or null."""
    choice = reply.choices[0]
    said = repr((choice.text or "")[:_SHOWN])
    if choice.status == "truncated":
        why = "the reply was cut by its length, so what it would have said is not known"
        return CallFault("cut_verdict", f"{why}: {said}", status=200)
    if choice.status == "refused":
        return CallFault(
            "filtered_verdict", f"the reply was filtered or refused: {said}", status=200
        )
    if choice.text is None or not readable(choice.text):
        return CallFault("unreadable_verdict", f"no verdict in: {said}", status=200)
    return None
