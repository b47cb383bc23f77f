"""Outcomes of calls as attempts, and their way into the ledger."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from routeyard.pipelines.collect.budget import Price, Tally, cost_of
from routeyard.pipelines.collect.ledger import Attempt, Ledger
from routeyard.pipelines.collect.reply import CallFault, ModelReply, Usage
from routeyard.pipelines.collect.request import Request

# Which requests are ours to send, where several processes want the same ones.

#: Requests claimed at once; so many a killed process holds at most until its lease is over.
CHUNK = 64
#: Seconds between looks at what other processes hold.
HELD_WAIT_S = 0.5


@dataclass(frozen=True)
class Claims:
    """Claims requests for one worker, and knows when to give them up.

    Args:
        after: `ledger.position()` when the plan was made; what was settled since then
            counts in `tally.elsewhere`.
        halted: Whether nothing more is sent.
        sleep: Waits no longer than the run lasts.
    """

    _ledger: Ledger
    _after: int
    _tally: Tally
    _halted: Callable[[], bool]
    _sleep: Callable[[float], Awaitable[None]]

    async def each(self, source: Iterator[Request]) -> AsyncIterator[Request]:
        """Requests that are ours to send; those another process holds come last.

        The next chunk is claimed while this one is sent. What was claimed and not
        given out when the run halts is released.
        """
        held: list[Request] = []
        chunk = list(itertools.islice(source, CHUNK))
        upcoming = asyncio.ensure_future(self._claim(chunk))
        while True:
            granted, waiting = await upcoming
            held += waiting
            more = bool(chunk)
            self._tally.held = 0 if more else sum(len(entry.samples) for entry in held)
            if more:
                chunk = list(itertools.islice(source, CHUNK))
                upcoming = asyncio.ensure_future(self._claim(chunk))
            for position, request in enumerate(granted):
                if self._halted():
                    rest = granted[position:] + ((await upcoming)[0] if more else [])
                    for item in rest:
                        self._ledger.release(item.keys)
                    return
                yield request
            if not more:
                if not held or self._halted():
                    return
                await self._sleep(HELD_WAIT_S)
                again, held = held, []
                upcoming = asyncio.ensure_future(self._claim(again))

    async def still_ours(self, request: Request) -> Request | None:
        """What is left to send of a claimed request whose lease may have lapsed; null for nothing.

        What another process holds by now is waited for.
        """
        left: Request | None = request
        while left and not self._halted() and not self._ledger.holds(left.keys):
            claim = await asyncio.wrap_future(self._ledger.claim(left.keys, after=self._after))
            self._tally.elsewhere += len(claim.settled)
            wanted = {*claim.granted, *claim.held}
            left = left.only(s for h, s in left.keys if (h, s) in wanted)
            if not claim.held:
                break
            await self._sleep(HELD_WAIT_S)
        return left

    async def _claim(self, requests: list[Request]) -> tuple[list[Request], list[Request]]:
        """What is granted of a chunk, and what others hold."""
        if not requests:
            return [], []
        keys = [key for request in requests for key in request.keys]
        claim = await asyncio.wrap_future(self._ledger.claim(keys, after=self._after))
        self._tally.elsewhere += len(claim.settled)
        ours, theirs = set(claim.granted), set(claim.held)
        granted: list[Request] = []
        held: list[Request] = []
        for request in requests:
            for wanted, parts in ((ours, granted), (theirs, held)):
                part = request.only(s for h, s in request.keys if (h, s) in wanted)
                if part:
                    parts.append(part)
        return granted, held


OnStored = Callable[[Sequence[Attempt]], None]


@dataclass(frozen=True, slots=True)
class Origin:
    """Run, purpose, time and price of a call."""

    run: str
    purpose: str
    requested_at: datetime
    price: Price

    def of(self, request: Request, sample: int) -> dict[str, Any]:
        """Columns of an attempt that are known before the call ends."""
        return {
            "request_hash": request.request_hash,
            "sample": sample,
            "query_id": request.query_id,
            "model_id": request.model_id,
            "settings_hash": request.settings.settings_hash,
            "run": self.run,
            "purpose": self.purpose,
            "requested_at": self.requested_at.isoformat(timespec="milliseconds"),
        }


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What is still wanted of a request, and the seconds to wait before the next attempt."""

    left: Request | None
    sent: bool = True
    failed: bool = False
    billed: bool = False
    wait_s: float = 0.0


def _metered(usage: Usage, price: Price, count: int) -> dict[str, Any]:
    """Columns of usage and cost of one of `count` samples that share a call."""
    usd, source = cost_of(usage, price)
    return {
        "prompt_tokens": usage.prompt_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "call_completion_tokens": usage.completion_tokens,
        # The server sends one count for all samples: the share of each is not known.
        "completion_tokens": usage.completion_tokens if count == 1 else None,
        "cost_usd": None if usd is None else usd / count,
        "cost_source": source,
    }


def answered_rows(
    request: Request,
    reply: ModelReply,
    origin: Origin,
    *,
    latency_s: float | None,
    ttft_s: float | None,
) -> list[Attempt]:
    """One row for each wanted sample that the reply has a choice for."""
    # More choices than were asked for are not samples anybody wanted.
    choices = reply.choices[: len(request.samples)]
    count, usage = len(choices), reply.usage
    return [
        Attempt(
            **origin.of(request, sample),
            **_metered(usage, origin.price, count),
            status=choice.status,
            permanent=False,
            http_status=200,
            text=choice.text,
            finish_reason=choice.finish_reason,
            served_model=reply.served_model,
            provider=reply.provider,
            system_fingerprint=reply.system_fingerprint,
            choices=count,
            reasoning_tokens=usage.reasoning_tokens if count == 1 else None,
            total_tokens=usage.total_tokens if count == 1 else None,
            latency_s=latency_s,
            ttft_s=ttft_s,
            logprobs=choice.logprobs,
        )
        for sample, choice in zip(request.samples, choices, strict=False)
    ]


def failed_rows(
    request: Request, fault: CallFault, origin: Origin, *, latency_s: float | None
) -> list[Attempt]:
    """One row for each sample without an answer, with the usage that the server metered for it.

    A fault of set-up is not permanent: a person mends it, and the pair is asked again.
    """
    count = len(request.samples)
    metered = _metered(fault.usage, origin.price, count) if fault.usage is not None else {}
    return [
        Attempt(
            **origin.of(request, sample),
            **metered,
            status="refused" if fault.refused else "error",
            permanent=fault.permanent and not (fault.concerns or fault.refused),
            http_status=fault.status,
            error_class=fault.kind,
            error=fault.message,
            choices=count,
            latency_s=latency_s,
        )
        for sample in request.samples
    ]


@dataclass(eq=False)
class AttemptWriter:
    """Writes the attempts of a run to the ledger and counts them once they are durable.

    Args:
        on_stored: Called in the ledger's thread once attempts are durable.
        on_fault: Called in the event loop when the ledger can keep no more, or with what
            `on_stored` raised.
    """

    _ledger: Ledger
    _on_stored: OnStored | None
    _on_fault: Callable[[BaseException], None]
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    async def keep(
        self, rows: Sequence[Attempt], tally: Tally, *, settles: bool
    ) -> BaseException | None:
        """Write rows; returns when they are durable and counted by `tally`, or the error.

        The caller holds its place until then: a killed run pays at most for as many calls twice
        as it has in flight.
        """
        future: asyncio.Future[BaseException | None] = self._loop.create_future()

        def stored(fault: BaseException | None) -> None:
            durable = fault is None
            if durable and self._on_stored:
                try:
                    self._on_stored(rows)
                except BaseException as error:  # `SystemExit` too is for whoever called us
                    fault = error
            # The loop is closed after a second Ctrl-C: then nobody waits.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(counted, durable, fault)

        def counted(durable: bool, fault: BaseException | None) -> None:
            if durable:
                tally.count(rows)
            if fault is not None:
                self._on_fault(fault)
            if not future.done():
                future.set_result(fault)

        self._ledger.append(rows, settles=settles, done=stored)
        return await future
