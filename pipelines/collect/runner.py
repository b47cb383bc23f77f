"""Runs the requests of several models within limits and a budget, and stores every attempt.

Each model has a `ModelWorker` with its own window, rate and failure counts. A worker
claims requests in small chunks and sends them as places become free. Only requests in flight
are held in memory, so memory does not grow with the length of a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from routeyard.pipelines.collect.budget import (
    BudgetLedger,
    LeastUsage,
    OnProgress,
    Price,
    Tally,
    UsageWatch,
    cost_of,
    counted,
    counted_fault,
    least_usage,
    snapshot,
    worst_case,
)
from routeyard.pipelines.collect.client import Client, TimedReply, Timeouts
from routeyard.pipelines.collect.ledger import Attempt, Ledger, is_billed
from routeyard.pipelines.collect.reply import CallFault, ModelReply, Usage
from routeyard.pipelines.collect.request import Request
from routeyard.schemas.recipe.collect import RateLimits, Retry
from routeyard.schemas.recipe.pool import Provider

# How long a worker waits before it repeats a call that failed.

#: Longest wait between attempts, in seconds.
LONGEST_WAIT_S = 60.0
#: A Retry-After above this pauses the model instead of holding the run.
LONGEST_RETRY_AFTER_S = 600.0
#: Attempts after which the next one follows soon, where the model answers other calls.
_SOON = 2
#: A server with one of these has too much to do: 529 is Anthropic's.
_OVERLOADED = (503, 529)


def backoff(
    retry: Retry, fault: CallFault, number: int, jitter: float, *, alone: bool = False
) -> float:
    """Seconds before attempt `number` + 1: exponential, jittered over the upper half.

    Args:
        alone: The model answered other calls while this one failed: a tenth of the wait is
            enough, unless the server says that it is overloaded.
    """
    if fault.retry_after is not None:
        # The gate waits; the jitter keeps waiting requests from being sent all at once.
        return jitter * 0.1
    wait = min(LONGEST_WAIT_S, retry.first_wait_s * 2.0 ** (number - 1))
    if alone and number <= _SOON and not fault.throttled and fault.status not in _OVERLOADED:
        wait *= 0.1
    return wait * (0.5 + jitter / 2)


# How much is asked at once and per minute, for a provider and for a model.
#
# The window is TCP's (Chiu and Jain 1989, additive increase, multiplicative
# decrease): the first answer opens it to ten (RFC 6928), or to half of what the recipe
# lets be asked at once where that is more; it doubles per round trip
# until the first 429 and is halved by each round of 429s; then it doubles up to seven
# eighths of where it was, and grows by one per round trip from there. The rate is a virtual
# scheduling algorithm (GCRA, ITU-T I.371): no burst above one second's share.

#: The window after the first answer, or that share of the ceiling, and the share of a throttled
#: window that is safe again.
_OPENED, _HALF, _SAFE = 10.0, 1 / 2, 7 / 8


class Window:
    """Calls in flight, between 1 and `ceiling`.

    A fixed window (`adaptive=False`) stays at the ceiling.
    """

    def __init__(self, ceiling: int, *, adaptive: bool = True) -> None:
        self.ceiling = ceiling
        self.size = 1.0 if adaptive else float(ceiling)
        self.in_flight = 0
        self._adaptive = adaptive
        #: Below this the window doubles per round trip; above it grows by one.
        self._doubles_to = float(ceiling)
        self._halved_at = -1.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Wait for a place; whoever came first goes first."""
        if not self._waiting and self.in_flight < int(self.size):
            self.in_flight += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        self.in_flight -= 1
        self._admit()

    def succeeded(self) -> None:
        """An answer came: grow."""
        if self._adaptive and self.size < self.ceiling:
            if self.size == 1.0 and self._doubles_to == self.ceiling:
                self.size = min(max(_OPENED, self.ceiling * _HALF), self.ceiling)
            elif self.size < self._doubles_to:
                self.size = min(self._doubles_to, self.size + 1.0)
            else:
                self.size = min(float(self.ceiling), self.size + 1.0 / self.size)
            self._admit()

    def throttled(self, sent_at: float) -> None:
        """A 429 came: halve, once per round trip.

        Args:
            sent_at: `time.monotonic()` at which that call was sent; calls sent
                before the last halving say nothing about the window since.
        """
        if self._adaptive and sent_at > self._halved_at:
            self._doubles_to = self.size * _SAFE
            self.size = max(1.0, self.size / 2)
            self._halved_at = time.monotonic()

    def _admit(self) -> None:
        while self._waiting and self.in_flight < int(self.size):
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)


class Rate:
    """At most `per_minute` units a minute, spread evenly (GCRA)."""

    def __init__(self, per_minute: float) -> None:
        self._seconds = 60.0 / per_minute
        self._next = 0.0

    def reserve(self, units: float) -> float:
        """Take units and return the seconds to wait before using them."""
        now = time.monotonic()
        # One second of unused share may be caught up, at most.
        start = max(self._next, now - 1.0)
        self._next = start + units * self._seconds
        return max(0.0, start - now)

    def correct(self, units: float) -> None:
        """Give back (or take) units that an estimate had wrong."""
        self._next -= units * self._seconds


class Gate:
    """What one model or one provider lets through."""

    def __init__(self, limits: RateLimits, *, adaptive: bool) -> None:
        self.window = Window(limits.concurrency, adaptive=adaptive)
        self._requests = Rate(limits.requests_per_minute) if limits.requests_per_minute else None
        self._tokens = Rate(limits.tokens_per_minute) if limits.tokens_per_minute else None
        #: `time.monotonic()` before which nothing is sent (Retry-After).
        self.not_before = 0.0

    def delay(self, tokens: int) -> float:
        """Seconds to wait before a call of that many tokens may be sent."""
        wait = self.not_before - time.monotonic()
        if self._requests:
            wait = max(wait, self._requests.reserve(1))
        if self._tokens:
            wait = max(wait, self._tokens.reserve(tokens))
        return max(0.0, wait)

    def correct(self, expected: int, metered: int | None) -> None:
        """Replace an expected token count by the metered one."""
        if self._tokens and metered is not None:
            self._tokens.correct(expected - metered)

    def hold(self, seconds: float) -> None:
        """Send nothing for so long."""
        self.not_before = max(self.not_before, time.monotonic() + seconds)


# The requests of one model and the limits under which they are sent.


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
    transport: Callable[..., Client] = Client

    def check(self, reply: ModelReply) -> None:
        """Raise the fault that makes a reply no answer."""
        if self.unusable and (fault := self.unusable(reply)) is not None:
            fault.usage = reply.usage
            raise fault


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
            granted, held = await self._claim([left])
            left = left.among({key for part in (*granted, *held) for key in part.keys})
            if not held:
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
        granted, held = (
            [part for request in requests if (part := request.among(keys))]
            for keys in (set(claim.granted), set(claim.held))
        )
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
                self._loop.call_soon_threadsafe(noted, durable, fault)

        def noted(durable: bool, fault: BaseException | None) -> None:
            if durable:
                tally.count(rows)
            if fault is not None:
                self._on_fault(fault)
            if not future.done():
                future.set_result(fault)

        self._ledger.append(rows, settles=settles, done=stored)
        return await future


# A worker sends the requests of one model: claim, budget, limits, send, store, retry.

#: Attempts without a connection after which a model that never answered is paused.
UNREACHABLE = 6
#: Longest wait between them: a wrong address is known in seconds.
_UNREACHABLE_WAIT_S = 1.0


@dataclass(eq=False)
class RequestRun:
    """One run: how it asks, and the state that its workers share.

    Args:
        after: `ledger.position()` when the plan was made.
        name: Kept with each attempt.
        on_stored: Called in the ledger's thread once attempts are durable. What it raises ends
            the run: nothing more is sent, answers so far are kept, and it is raised.
        on_progress: Called five times a second and at the end, in the event loop.
    """

    ledger: Ledger
    after: int
    name: str
    purpose: str
    retry: Retry
    budget: BudgetLedger
    on_stored: OnStored | None = None
    timeouts: Timeouts = field(default_factory=Timeouts)
    stream: bool = False
    on_progress: OnProgress | None = None
    tallies: dict[str, Tally] = field(default_factory=dict)
    workers: list[ModelWorker] = field(default_factory=list)
    stopped: str | None = None
    fault: BaseException | None = None
    #: Jitter needs no seed: it changes when a request is sent, never which.
    random: random.Random = field(default_factory=random.Random)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @cached_property
    def writer(self) -> AttemptWriter:
        return AttemptWriter(self.ledger, self.on_stored, self.fail)

    def stop(self, why: str) -> None:
        """Send nothing more; the first reason is kept."""
        self.stopped = self.stopped or why
        self._stopping.set()

    def fail(self, fault: BaseException) -> None:
        """Stop the run with an error; the first one is kept."""
        self.fault = self.fault or fault
        self.stop(str(fault) or type(fault).__name__)

    @contextlib.contextmanager
    def progress_shown(self) -> Iterator[float]:
        """Show the tallies five times a second, and once more at the end; yields when it began."""
        started = time.monotonic()

        def show(finished: bool) -> None:
            if self.on_progress:
                elapsed = time.monotonic() - started
                self.on_progress(snapshot(self.tallies, elapsed, finished=finished))

        async def tick() -> None:
            while True:
                show(False)
                await asyncio.sleep(0.2)

        ticker = asyncio.ensure_future(tick())
        try:
            yield started
        finally:
            ticker.cancel()
            show(True)

    async def sleep(self, seconds: float) -> None:
        """Sleep, but no longer than the run lasts."""
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)


def nobody_answers(provider: Provider, fault: CallFault, times: int = 1) -> str:
    """Why a model is asked no more, and what to do, where no connection comes about."""
    often = f", {times} times in a row" if times > 1 else ""
    return (
        f"nobody answers at the address of provider {provider.name!r} ({provider.base_url})"
        f"{often}: {fault.message[:200]}; start the server, check the network, or correct "
        "'base_url'"
    )


class ModelWorker:
    """Sends one model's requests, and pauses when further ones would fail as well.

    Args:
        provider: Limits that all models of the provider share.
    """

    def __init__(self, run: RequestRun, queue: ModelQueue, client: Client, provider: Gate) -> None:
        self.run, self.queue, self.client = run, queue, client
        self.gate, self.provider = Gate(queue.limits, adaptive=True), provider
        self.tally = run.tallies[queue.model_id] = Tally(queue.wanted, queue.before)
        run.workers.append(self)
        # Failures in a row: pairs given up, refusals of model or key, attempts without connection.
        self.failures = self.refusals = self.unreachable = 0
        #: `time.monotonic()` of the last answer; None before the first.
        self.answered_at: float | None = None
        self._usage = UsageWatch()
        #: Ask for one sample per call: the server gave fewer than `n`.
        self.single = False
        self._claims = Claims(run.ledger, run.after, self.tally, lambda: self.halted, run.sleep)

    @property
    def halted(self) -> bool:
        return bool(self.run.stopped or self.tally.paused)

    async def work(self) -> None:
        """Send every request of the queue; returns when the last call has ended."""
        calls: set[asyncio.Task[None]] = set()
        try:
            async for request in self._claims.each(self.queue.requests):
                for part in request.singly() if self.single else (request,):
                    await self.gate.window.enter()
                    if self.halted:
                        self.gate.window.leave()
                        self.run.ledger.release(part.keys)
                        continue
                    call = asyncio.ensure_future(self.send(part))
                    calls.add(call)
                    call.add_done_callback(calls.discard)
        finally:
            if calls:
                await asyncio.gather(*calls)

    async def send(self, request: Request) -> None:
        """Send a request until it is answered, given up, or the worker is halted."""
        tally = self.tally
        tally.in_flight += 1
        left: Request | None = request
        failed, number = False, 1
        try:
            while left and (left := await self._claims.still_ours(left)):
                outcome = await self._attempt(left, number)
                if outcome.left is None:
                    return
                number += outcome.sent
                failed |= outcome.failed
                left = replace(outcome.left, billed=outcome.left.billed + outcome.billed)
                if not self.halted:
                    await self.run.sleep(outcome.wait_s)
                if self.halted:
                    tally.failed += len(left.samples) if failed else 0
                    self.run.ledger.release(left.keys)
                    return
        except Exception as error:
            self.run.fail(error)
        finally:
            tally.in_flight -= 1
            self.gate.window.leave()

    async def _attempt(self, request: Request, number: int) -> AttemptOutcome:
        """Send once and store the outcome; its places are free again when that is durable."""
        queue, budget, gates = self.queue, self.run.budget, (self.gate, self.provider)
        charge, worst = "", 0.0
        expected = request.tokens_expected + (request.max_tokens or 0) * len(request.samples)
        spent: float | None = 0.0
        placed = False
        try:
            placed = await self._pass_gates(expected)
            # Charged last: the charges that a kill leaves are then of calls that were sent.
            if budget.limited and not self.halted:
                worst = worst_case(request, queue.price, request.max_tokens or queue.max_tokens)
                charge = await budget.reserve(queue.model_id, worst, self.tally) or ""
                if not charge:
                    self.tally.out_of_budget |= self.tally.paused is None
                    self.pause(budget.full(queue.model_id))
            if self.halted or not self.run.ledger.holds(request.keys):
                # While it waited. Other models of the provider may use its share of the rates.
                for gate in gates:
                    gate.correct(expected, 0)
                return AttemptOutcome(request, sent=False)
            self.tally.asked += 1
            origin = Origin(self.run.name, self.run.purpose, datetime.now(UTC), queue.price)
            sent_at = time.monotonic()
            spent, least = None, LeastUsage()
            trusted = float(queue.provider.trust_cached_tokens)
            if charge:
                least = least_usage(request.messages, cached=trusted)
            sent = await self.client.complete(
                request.settings.endpoint, request.body(stream=self.client.streams)
            )
            if charge:
                cached = max(trusted, budget.cached(request))
                choices = sent.reply.choices
                least = least_usage(request.messages, choices, cached)
            queue.check(sent.reply)
        except CallFault as fault:
            spent = counted_fault(fault, queue.price, least, worst)
            return await self._failed(request, fault, origin, sent_at, number)
        else:
            self.gate.window.succeeded()
            spent = counted(sent.reply.usage, queue.price, least)
            if charge and (why := self._usage.add(sent.reply.usage, least)):
                self.pause(why)
            for gate in gates:
                gate.correct(expected, sent.reply.usage.total_tokens)
            return await self._answered(request, sent, origin)
        finally:
            if placed:
                self.provider.window.leave()
            await budget.settle(charge, spent)

    async def _pass_gates(self, tokens: int) -> bool:
        """Wait for both rates, then for a place at the provider (left by the caller).

        Returns:
            False where there is no place to leave: the run was stopped meanwhile.
        """
        delay = max(self.gate.delay(tokens), self.provider.delay(tokens))
        while delay > 0 and not self.run.stopped:
            await self.run.sleep(delay)
            # A Retry-After may have come while we waited.
            delay = max(self.gate.not_before, self.provider.not_before) - time.monotonic()
        if self.run.stopped:
            return False
        await self.provider.window.enter()
        return True

    async def _answered(self, request: Request, sent: TimedReply, origin: Origin) -> AttemptOutcome:
        self.failures = self.refusals = self.unreachable = 0
        self.answered_at = time.monotonic()
        rows = answered_rows(
            request, sent.reply, origin, latency_s=sent.latency_s, ttft_s=sent.ttft_s
        )
        await self.run.writer.keep(rows, self.tally, settles=True)
        if len(rows) < len(request.samples):
            self.single = True
            return AttemptOutcome(request.only(request.samples[len(rows) :]))
        return AttemptOutcome(None)

    async def _failed(
        self, request: Request, fault: CallFault, origin: Origin, sent_at: float, number: int
    ) -> AttemptOutcome:
        retry, most = self.run.retry, self.queue.unanswered_after
        # Of a verifier or judge it is no verdict.
        fault.refused &= self.queue.unusable is None
        rows = failed_rows(request, fault, origin, latency_s=time.monotonic() - sent_at)
        if fault.refused:
            self.failures = self.refusals = self.unreachable = 0
            self.answered_at = time.monotonic()
            await self.run.writer.keep(rows, self.tally, settles=True)
            return AttemptOutcome(None)
        self.tally.errors[fault.kind] += 1
        billed = is_billed(rows[0])
        unanswered = billed and most is not None and request.billed + 1 >= most
        final = fault.permanent or number >= retry.attempts or unanswered
        if fault.throttled:
            self.gate.window.throttled(sent_at)
        if fault.retry_after is not None:
            if fault.retry_after > LONGEST_RETRY_AFTER_S:
                self.pause(f"asked to wait {fault.retry_after:.0f} s ({fault.kind})")
            else:
                self.gate.hold(fault.retry_after)
        self._count_unreachable(fault)
        if final:
            self.tally.gave_up(rows, unanswered=unanswered)
            self._count_given_up(fault)
        await self.run.writer.keep(rows, self.tally, settles=final)
        if final:
            return AttemptOutcome(None, failed=True)
        alone = (self.answered_at or sent_at) > sent_at
        wait_s = backoff(retry, fault, number, self.run.random.random(), alone=alone)
        if fault.unreachable and self.answered_at is None:
            wait_s = min(wait_s, _UNREACHABLE_WAIT_S)
        return AttemptOutcome(request, failed=True, billed=billed, wait_s=wait_s)

    def pause(self, why: str) -> None:
        """Send this model nothing more; the first reason is kept."""
        self.tally.paused = self.tally.paused or why

    def _count_unreachable(self, fault: CallFault) -> None:
        self.unreachable = self.unreachable + 1 if fault.unreachable else 0
        if self.unreachable >= UNREACHABLE and self.answered_at is None:
            self.pause(nobody_answers(self.queue.provider, fault, self.unreachable))

    def _count_given_up(self, fault: CallFault) -> None:
        self.failures += 1
        self.refusals = self.refusals + 1 if fault.concerns else 0
        self.tally.met(fault)
        # Where the model answers others, one refusal may be about the question.
        surely = fault.concerns == "provider" or not self.queue.before
        if fault.concerns and (self.refusals >= 3 or (surely and self.answered_at is None)):
            self.pause(f"the provider refuses model or key ({fault.words})")
            if fault.concerns == "provider":
                self._stop_provider(fault)
        elif self.failures >= self.run.retry.pause_after:
            why = f"{self.failures} pairs in a row failed, last with {fault.words}"
            if fault.kind in ("invalid_json", "empty_body") and self.answered_at is None:
                url = self.queue.provider.base_url
                why += f"; 'base_url' ({url}) may be no API: many end in /v1"
            self.pause(why)

    def _stop_provider(self, fault: CallFault) -> None:
        """Pause the provider's models; those that it answers find out for themselves."""
        for item in self.run.workers:
            if item.queue.provider.name == self.queue.provider.name and item.answered_at is None:
                item.tally.set_up.setdefault(fault.words, 0)
                item.pause(f"the provider refuses model or key ({fault.words})")


_DRAIN_S = 30.0


@dataclass(frozen=True)
class RunResult:
    """How a run ended: tallies per model, and why the whole run stopped early, if it did."""

    tallies: Mapping[str, Tally]
    stopped: str | None
    elapsed_s: float

    @property
    def missing(self) -> dict[str, int]:
        """Answers that asking again may bring, per model that misses any."""
        return {model: left for model, tally in self.tallies.items() if (left := tally.left)}

    @property
    def complete(self) -> bool:
        return not self.missing

    @property
    def paused(self) -> dict[str, str]:
        """Why a model was given up in this run, by model."""
        return {model: tally.paused for model, tally in self.tallies.items() if tally.paused}

    @property
    def refused(self) -> dict[str, str]:
        """What came back where a key, an address or a model was refused, by model: nothing of it
        is settled, and a person can mend it."""
        return {model: said for model, tally in self.tallies.items() if (said := tally.refusal)}

    @property
    def out_of_budget(self) -> bool:
        """Whether nothing but the budget keeps the missing answers away."""
        missing = self.missing
        return bool(missing) and all(self.tallies[model].out_of_budget for model in missing)

    @property
    def figures(self) -> dict[str, Any]:
        """JSON-ready counts per model."""
        models = {model: tally.figures() for model, tally in self.tallies.items()}
        return {"elapsed_s": self.elapsed_s, "models": models}


async def run_requests(queues: Sequence[ModelQueue], run: RequestRun) -> RunResult:
    """Send every request of every queue; each wanted answer ends as attempts in the ledger.

    Raises:
        BadInput: a key is not set.
        DiskFull: the ledger can keep no more.
    """
    async with clients_of(queues, run) as clients:
        await run.budget.begin(run.name)
        gates = {
            queue.provider.name: Gate(queue.provider.limits, adaptive=False) for queue in queues
        }
        workers = [
            ModelWorker(run, queue, clients[name], gates[name])
            for queue in queues
            for name in [queue.provider.name]
        ]
        work = [asyncio.ensure_future(worker.work()) for worker in workers]
        with run.progress_shown() as started:
            try:
                # Not `gather`: it would cancel the calls with us.
                await asyncio.wait(work)
            except asyncio.CancelledError:
                # Ctrl-C: what is in flight is paid for, so wait for it.
                run.stop("interrupted")
                await asyncio.wait(work, timeout=_DRAIN_S)
                for task in work:
                    task.cancel()
                raise
            finally:
                with contextlib.suppress(*([Exception] if run.fault else [])):
                    await run.budget.close()
                await asyncio.to_thread(run.ledger.flush)
        if run.fault is None:
            await run.budget.explain(run.tallies)
        for task in work:
            task.result()
    if run.fault is not None:
        raise run.fault
    return RunResult(run.tallies, run.stopped, time.monotonic() - started)


@contextlib.asynccontextmanager
async def clients_of(
    queues: Sequence[ModelQueue], run: RequestRun
) -> AsyncIterator[Mapping[str, Client]]:
    """One open client per provider, with a connection for each call that may be in flight."""
    connections: Counter[str] = Counter()
    for queue in queues:
        connections[queue.provider.name] += queue.limits.concurrency
    async with contextlib.AsyncExitStack() as stack:
        clients: dict[str, Client] = {}
        for name, queue in {queue.provider.name: queue for queue in queues}.items():
            client = queue.transport(
                queue.provider,
                connections=connections[name],
                timeouts=run.timeouts,
                stream=run.stream,
            )
            clients[name] = await stack.enter_async_context(client)
        yield clients
