"""Requests to a verifier or judge: its limits, its budget and the replies that can be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Required, TypedDict, Unpack

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


class PromptRun(TypedDict, total=False):
    """Whose prompts are asked: a run, the benchmark whose budget it is; `send` False only looks at
    what the ledger holds."""

    run: Required[str]
    benchmark: str
    send: bool


def ask_model(
    requests: Sequence[Request],
    served: ServedModel,
    ledger: Ledger,
    *,
    purpose: str,
    read: Callable[[str], object],
    transport: Callable[..., Transport] = Client,
    **how: Unpack[PromptRun],
) -> PromptResults:
    """Ask a verifier or judge what the ledger does not answer yet.

    Args:
        read: What a reply says, or null. One that says nothing, or that was cut by
            length or by a filter, is asked again, then counts as an error.

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
        f"{how.get('benchmark', '')}, {name}",
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
        unusable=lambda reply: unusable(reply, read),
        unanswered_after=Unanswered().after,
        transport=transport,
    )
    return ask_prompts(
        requests,
        queue,
        ledger,
        purpose=purpose,
        retry=served.retry,
        budget=budget,
        timeouts=Timeouts(deadline_s=served.timeout_s),
        **how,
    )


def unusable(reply: ModelReply, read: Callable[[str], object]) -> CallFault | None:
    """Reason why a reply has no verdict, or null."""
    choice = reply.choices[0]
    if choice.status == "truncated":
        fault, why = "cut_verdict", "the reply was cut by its length, so what it would have said "
        why += "is not known"
    elif choice.status == "refused":
        fault, why = "filtered_verdict", "the reply was filtered or refused"
    elif choice.text is None or read(choice.text) is None:
        fault, why = "unreadable_verdict", "no verdict in"
    else:
        return None
    return CallFault(fault, f"{why}: {(choice.text or '')[:_SHOWN]!r}", status=200)
