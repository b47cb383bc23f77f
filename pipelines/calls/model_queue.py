"""One model's lane: what it is to be asked, how it stands, and when it waits or gives up."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipelines.calls.client import Client, TimedReply
from pipelines.calls.limits import Gate
from pipelines.calls.pricing import Price
from pipelines.calls.progress import Tally
from pipelines.calls.reply import CallFault, ModelReply
from pipelines.calls.request import Request
from schemas.recipe.collect import RateLimits, Retry
from schemas.recipe.pool import Provider

#: Attempts that find nobody at the address before a model that never answered is paused.
UNREACHABLE = 6
#: Longest wait between them: a wrong address is known in seconds.
_UNREACHABLE_WAIT_S = 1.0


class Transport(Protocol):
    """How one provider is asked: `client.Client`, or `wire.posting.Posting` over `requests`."""

    @property
    def streams(self) -> bool: ...
    async def complete(self, path: str, body: Mapping[str, Any]) -> TimedReply: ...
    async def __aenter__(self) -> Any: ...
    async def __aexit__(self, *_: object) -> None: ...


@dataclass
class ModelQueue:
    """What one model is to be asked.

    Attributes:
        requests: Read lazily and once; only what is missing.
        wanted: Answers wanted in all; `before` of them were there already.
        max_tokens: Most tokens of one answer, for the budget's worst case.
        unusable: What is wrong with a reply for whoever asked, as a fault that is
            kept and asked again; null where any answer is one.
        unanswered_after: Billed attempts over all runs after which a pair is given up.
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
    transport: Callable[..., Transport] = Client


@dataclass
class QueueState:
    """A lane while it runs: its gates, its tally, and its failures in a row."""

    lane: ModelQueue
    client: Transport
    gate: Gate
    provider: Gate
    tally: Tally
    failures: int = 0
    lane_faults: int = 0
    unreachable: int = 0
    answered: bool = False
    single: bool = False

    async def pass_gates(
        self,
        tokens: int,
        sleep: Callable[[float], Awaitable[None]],
        halted: Callable[[], bool],
    ) -> bool:
        """Wait for both rates, then for a place at the provider (left by the caller).

        Returns:
            False where there is no place to leave: the run was halted meanwhile.
        """
        delay = max(self.gate.delay(tokens), self.provider.delay(tokens))
        while delay > 0 and not halted():
            await sleep(delay)
            # A Retry-After may have come while we waited.
            delay = max(self.gate.not_before, self.provider.not_before) - time.monotonic()
        if halted():
            return False
        await self.provider.window.enter()
        return True

    def pause(self, why: str) -> None:
        """Ask this model nothing more; the first reason stands."""
        self.tally.paused = self.tally.paused or why

    def failed_once(self, fault: CallFault) -> None:
        """Count a failed attempt; pause where nobody is at the address."""
        self.unreachable = self.unreachable + 1 if fault.unreachable else 0
        if self.unreachable >= UNREACHABLE and not self.answered:
            self.pause(
                f"nobody answers at the address of provider {self.lane.provider.name!r}, "
                f"{self.unreachable} times in a row ({fault.kind}: {fault.message[:200]}); "
                "start the server, or correct 'base_url'"
            )

    def wait(self, retry: Retry, fault: CallFault, number: int, jitter: float) -> float:
        """Seconds before attempt `number` + 1."""
        seconds = backoff(retry, fault, number, jitter)
        if fault.unreachable and not self.answered:
            return min(seconds, _UNREACHABLE_WAIT_S)
        return seconds

    def failed_for_good(self, fault: CallFault, retry: Retry) -> None:
        """Count a pair that is given up; pause when further ones would fail as well."""
        self.failures += 1
        self.lane_faults = self.lane_faults + 1 if fault.lane else 0
        said = f"{fault.kind}: {fault.message[:200]}"
        if fault.lane and (not self.answered or self.lane_faults >= 3):
            self.pause(f"the provider refuses model or key ({said})")
        elif self.failures >= retry.pause_after:
            self.pause(f"{self.failures} pairs in a row failed, last with {said}")


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What is still wanted of a request, and how long to wait before asking again."""

    left: Request | None
    failed: bool = False
    billed: bool = False
    wait: Callable[[int, float], float] = lambda number, jitter: 0.0


def backoff(retry: Retry, fault: CallFault, number: int, jitter: float) -> float:
    """Seconds before attempt `number` + 1: exponential, jittered over the upper half."""
    if fault.retry_after is not None:
        # The gate waits; the jitter keeps the waiting from arriving all at once.
        return jitter * 0.1
    wait = min(retry.longest_wait_s, retry.first_wait_s * 2.0 ** (number - 1))
    return wait * (0.5 + jitter / 2)
