"""The requests of one model and the limits under which they are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from routeyard.pipelines.calls.bill import TOKENS_PER_WORD
from routeyard.pipelines.calls.client import Client, TimedReply
from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.calls.reply import CallFault, ModelReply
from routeyard.pipelines.calls.request import Request
from routeyard.schemas.recipe.collect import RateLimits
from routeyard.schemas.recipe.pool import Provider


class Transport(Protocol):
    """Sends completions to one provider: `Client`, or `RequestsClient` over `requests`."""

    @property
    def streams(self) -> bool: ...
    async def complete(self, path: str, body: Mapping[str, Any]) -> TimedReply: ...
    async def __aenter__(self) -> Any: ...
    async def __aexit__(self, *_: object) -> None: ...


@dataclass
class ModelQueue:
    """The requests of one model.

    Attributes:
        requests: Read lazily and once; only what is missing.
        wanted: Answers wanted in all; `before` of them were there already.
        max_tokens: Most tokens of one answer, for the budget's worst case.
        unusable: Checks a reply: the fault that makes it no answer (it is stored and the
            request is sent again), or null.
        unanswered_after: Billed attempts over all runs after which a pair is given up.
        tokens_per_word: Fewest tokens per word, for the lower bound of a bill.
        judged_after: Answers after which impossible usage pauses the model, under a budget.
        transport: Made once per provider.
    """

    model_id: str
    provider: Provider
    requests: Iterator[Request]
    wanted: int
    before: int = 0
    limits: RateLimits = field(default_factory=RateLimits)
    price: Price = field(default_factory=Price)
    max_tokens: int | None = None
    unusable: Callable[[ModelReply], CallFault | None] | None = None
    unanswered_after: int | None = None
    tokens_per_word: float = TOKENS_PER_WORD
    judged_after: int = 20
    transport: Callable[..., Transport] = Client

    def check(self, reply: ModelReply) -> None:
        """Raise the fault that makes a reply no answer."""
        if self.unusable and (fault := self.unusable(reply)) is not None:
            fault.usage = reply.usage
            raise fault
