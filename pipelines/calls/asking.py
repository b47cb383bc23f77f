"""Asks many requests of many models, within limits and budget, into a ledger.

Each model has a lane of its own: its window, its rate, its failures. A lane
claims requests in small chunks, sends them as places become free, and keeps
every attempt. Nothing is held per request but what is in flight, so memory
does not grow with the length of a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from pipelines.calls.answer import Fault
from pipelines.calls.attempt import Attempt
from pipelines.calls.budget import Purse, worst_case
from pipelines.calls.client import Client, Sent
from pipelines.calls.ledger import Ledger
from pipelines.calls.limits import Gate
from pipelines.calls.pricing import Price, cost_of
from pipelines.calls.progress import OnProgress, Tally, snapshot
from pipelines.calls.request import Request
from pipelines.calls.rows import Origin, answered_rows, failed_rows
from schemas.recipe.collect import Budget, Limits, Retry
from schemas.recipe.pool import Provider

#: Requests claimed at once; what a killed process had claimed is free again at once.
CHUNK = 64
#: Answers that may wait for their commit before sending pauses.
UNCOMMITTED = 512
_HELD_WAIT_S = 0.5
_DRAIN_S = 30.0


@dataclass
class Lane:
    """What one model is to be asked.

    Attributes:
        requests: Read lazily and once; only what is missing.
        wanted: Answers wanted in all; `before` of them were there already.
        max_tokens: Most tokens of one answer, for the budget's worst case.
    """

    model_id: str
    provider: Provider
    requests: Iterator[Request]
    wanted: int
    before: int = 0
    limits: Limits = field(default_factory=Limits)
    price: Price = field(default_factory=Price)
    max_tokens: int | None = None


@dataclass(frozen=True)
class Asked:
    """How a run ended: tallies per model, and why it stopped early, if it did."""

    tallies: Mapping[str, Tally]
    stopped: str | None
    elapsed_s: float


async def ask(
    lanes: Sequence[Lane],
    ledger: Ledger,
    *,
    after: int,
    run: str,
    purpose: str = "collect",
    retry: Retry | None = None,
    budget: Budget | None = None,
    purse: Purse | None = None,
    deadline_s: float = 600.0,
    stream: bool = False,
    on_progress: OnProgress | None = None,
    on_stored: Callable[[Sequence[Attempt]], None] | None = None,
) -> Asked:
    """Ask every request of every lane; each wanted answer ends as attempts in the ledger.

    Args:
        after: `ledger.position()` when the plan was made.
        run: Name of this run, kept with each attempt.
        purse: What earlier parts of the run have spent; a new one of `budget` by default.
        on_progress: Called five times a second and at the end, in the event loop.
        on_stored: Called in the ledger's thread once attempts are durable.

    Raises:
        BadInput: a key is not set.
        DiskFull: the ledger can keep no more.
    """
    purse = purse or Purse(budget or Budget())
    running = _Run(ledger, after, run, purpose, retry or Retry(), purse, on_stored)
    started = time.monotonic()

    def show(finished: bool) -> None:
        if on_progress:
            elapsed = time.monotonic() - started
            on_progress(snapshot(running.tallies, elapsed, finished=finished))

    async def tick() -> None:
        while True:
            show(False)
            await asyncio.sleep(0.2)

    connections: dict[str, int] = {}
    for lane in lanes:
        known = connections.get(lane.provider.name, 0)
        connections[lane.provider.name] = known + lane.limits.concurrency
    async with _clients(lanes, connections, deadline_s, stream) as clients:
        gates = {lane.provider.name: Gate(lane.provider.limits, adaptive=False) for lane in lanes}
        work = [
            asyncio.ensure_future(
                running.lane(lane, clients[lane.provider.name], gates[lane.provider.name])
            )
            for lane in lanes
        ]
        ticker = asyncio.ensure_future(tick())
        try:
            # Not `gather`: it would cancel the calls with us.
            await asyncio.wait(work)
        except asyncio.CancelledError:
            # Ctrl-C: what is in flight is paid for, so wait for it.
            running.stop("interrupted")
            await asyncio.wait(work, timeout=_DRAIN_S)
            for task in work:
                task.cancel()
            raise
        finally:
            ticker.cancel()
            await asyncio.to_thread(ledger.flush)
            show(True)
        for task in work:
            task.result()
    if running.fault is not None:
        raise running.fault
    return Asked(running.tallies, running.stopped, time.monotonic() - started)


class _clients:
    """One open client per provider."""

    def __init__(
        self, lanes: Sequence[Lane], connections: Mapping[str, int], deadline_s: float, stream: bool
    ) -> None:
        self._providers = {lane.provider.name: lane.provider for lane in lanes}
        self._connections = connections
        self._deadline_s = deadline_s
        self._stream = stream
        self._open: dict[str, Client] = {}

    async def __aenter__(self) -> Mapping[str, Client]:
        for name, provider in self._providers.items():
            self._open[name] = Client(
                provider,
                connections=self._connections[name],
                deadline_s=self._deadline_s,
                stream=self._stream,
            )
        return self._open

    async def __aexit__(self, *error: object) -> None:
        for client in self._open.values():
            await client.__aexit__(*error)


class _Run:
    """State that the lanes of one run share."""

    def __init__(
        self,
        ledger: Ledger,
        after: int,
        run: str,
        purpose: str,
        retry: Retry,
        purse: Purse,
        on_stored: Callable[[Sequence[Attempt]], None] | None,
    ) -> None:
        self.ledger = ledger
        self.after = after
        self.name = run
        self.purpose = purpose
        self.retry = retry
        self.purse = purse
        self.on_stored = on_stored
        self.tallies: dict[str, Tally] = {}
        self.stopped: str | None = None
        self.fault: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._uncommitted = asyncio.Semaphore(UNCOMMITTED)
        # Jitter needs no seed: it decides when to ask, never what.
        self._random = random.Random()

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self._stopping.set()

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but no longer than the run lasts."""
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    # -- one model -------------------------------------------------------------

    async def lane(self, lane: Lane, client: Client, provider: Gate) -> None:
        tally = self.tallies[lane.model_id] = Tally(lane.wanted, lane.before)
        state = _LaneState(lane, client, Gate(lane.limits, adaptive=True), provider, tally)
        calls: set[asyncio.Task[None]] = set()
        try:
            async for request in self._claimed(state):
                for part in request.singly() if state.single else (request,):
                    await state.gate.window.enter()
                    if self.stopped or tally.paused:
                        state.gate.window.leave()
                        self.ledger.release(part.keys)
                        continue
                    call = asyncio.ensure_future(self._request(state, part))
                    calls.add(call)
                    call.add_done_callback(calls.discard)
        finally:
            if calls:
                await asyncio.gather(*calls)

    async def _claimed(self, state: _LaneState) -> AsyncIterator[Request]:
        """Requests that are ours to send; those another process holds come last."""
        source = state.lane.requests
        held: list[Request] = []
        upcoming = self._claim(list(itertools.islice(source, CHUNK)))
        while True:
            granted, waiting, settled, size = await upcoming
            state.tally.elsewhere += settled
            held += waiting
            if size:
                upcoming = self._claim(list(itertools.islice(source, CHUNK)))
            for position, request in enumerate(granted):
                if self.stopped or state.tally.paused:
                    for rest in granted[position:]:
                        self.ledger.release(rest.keys)
                    if size:
                        for rest in (await upcoming)[0]:
                            self.ledger.release(rest.keys)
                    return
                yield request
            if not size:
                if not held or self.stopped or state.tally.paused:
                    return
                await self._sleep(_HELD_WAIT_S)
                again, held = held, []
                upcoming = self._claim(again, last=True)

    def _claim(
        self, requests: list[Request], *, last: bool = False
    ) -> asyncio.Future[tuple[list[Request], list[Request], int, int]]:
        return asyncio.ensure_future(self._claim_now(requests, last))

    async def _claim_now(
        self, requests: list[Request], last: bool
    ) -> tuple[list[Request], list[Request], int, int]:
        """(granted, held elsewhere, answers settled since the plan, chunk size)."""
        if not requests:
            return [], [], 0, 0
        keys = [key for request in requests for key in request.keys]
        claim = await asyncio.wrap_future(self.ledger.claim(keys, after=self.after))
        ours, theirs = set(claim.granted), set(claim.held)
        granted: list[Request] = []
        held: list[Request] = []
        for request in requests:
            for wanted, kept in ((ours, granted), (theirs, held)):
                part = request.only(s for h, s in request.keys if (h, s) in wanted)
                if part:
                    kept.append(part)
        return granted, held, len(claim.settled), 0 if last else len(requests)

    # -- one request -----------------------------------------------------------

    async def _request(self, state: _LaneState, request: Request) -> None:
        tally = state.tally
        tally.in_flight += 1
        left = request
        try:
            for number in itertools.count(1):
                outcome = await self._attempt(state, left, last=number >= self.retry.attempts)
                if outcome.left is None:
                    return
                left = outcome.left
                if not (self.stopped or tally.paused):
                    await self._sleep(outcome.wait(number, self._random.random()))
                if self.stopped or tally.paused:
                    tally.failed += len(left.samples) if outcome.failed else 0
                    self.ledger.release(left.keys)
                    return
        except Exception as error:
            self.fault = self.fault or error
            self.stop(str(error))
        finally:
            tally.in_flight -= 1
            state.gate.window.leave()

    async def _attempt(self, state: _LaneState, request: Request, *, last: bool) -> _Outcome:
        """Send once and keep what came of it."""
        lane, tally = state.lane, state.tally
        reserved = 0.0
        if self.purse.limited:
            limit = request.max_tokens or lane.max_tokens
            reserved = worst_case(request, lane.price, limit) if limit else float("inf")
            if not await self.purse.reserve(lane.model_id, reserved):
                tally.paused = tally.paused or "the budget is reached"
                return _Outcome(request)
        expected = request.tokens_expected + (request.max_tokens or 0) * len(request.samples)
        spent: float | None = 0.0
        try:
            await state.pass_gates(expected)
            try:
                tally.asked += 1
                requested_at = datetime.now(UTC)
                sent_at = time.monotonic()
                spent = None
                sent = await state.client.complete(
                    request.settings.endpoint, request.body(stream=state.client.streams)
                )
            finally:
                state.provider.window.leave()
        except Fault as fault:
            spent = None if fault.maybe_billed else 0.0
            return await self._failed(state, request, fault, requested_at, sent_at, last=last)
        else:
            state.gate.window.succeeded()
            spent, source = cost_of(sent.reply.usage, lane.price)
            tokens = sent.reply.usage.total_tokens
            state.gate.correct(expected, tokens)
            state.provider.correct(expected, tokens)
            return await self._answered(state, request, sent, requested_at, spent, source)
        finally:
            await self.purse.settle(lane.model_id, reserved, spent)

    async def _answered(
        self,
        state: _LaneState,
        request: Request,
        sent: Sent,
        requested_at: datetime,
        cost: float | None,
        source: str | None,
    ) -> _Outcome:
        reply, tally = sent.reply, state.tally
        state.failures = state.lane_faults = 0
        state.answered = True
        rows = answered_rows(
            request,
            reply,
            self._origin(state, requested_at),
            cost=(cost, source),
            latency_s=sent.latency_s,
            ttft_s=sent.ttft_s,
        )
        count = len(rows)
        await self._keep(state, rows, settles=True)
        if cost is None:
            tally.unpriced += count
        else:
            tally.spent_usd += cost
        if count < len(request.samples):
            # The server gave fewer than `n`: the others are asked one by one.
            state.single = True
            return _Outcome(request.only(request.samples[count:]))
        return _Outcome(None)

    async def _failed(
        self,
        state: _LaneState,
        request: Request,
        fault: Fault,
        requested_at: datetime,
        sent_at: float,
        *,
        last: bool,
    ) -> _Outcome:
        tally = state.tally
        tally.errors[fault.kind] += 1
        final = fault.permanent or last
        origin = self._origin(state, requested_at)
        rows = failed_rows(request, fault, origin, latency_s=time.monotonic() - sent_at)
        if fault.throttled:
            state.gate.window.throttled(sent_at)
        if fault.retry_after is not None:
            if fault.retry_after > self.retry.longest_retry_after_s:
                tally.paused = tally.paused or (
                    f"asked to wait {fault.retry_after:.0f} s ({fault.kind})"
                )
            else:
                state.gate.hold(fault.retry_after)
        if final:
            tally.failed += len(rows)
            tally.permanent += len(rows) if fault.permanent else 0
            state.failures += 1
            state.lane_faults = state.lane_faults + 1 if fault.lane else 0
            self._pause_if_hopeless(state, fault)
        await self._keep(state, rows, settles=final)
        if final:
            return _Outcome(None, failed=True)
        return _Outcome(request, failed=True, wait=partial(self._backoff, fault))

    def _backoff(self, fault: Fault, number: int, jitter: float) -> float:
        """Seconds before attempt `number` + 1: exponential, jittered over the upper half."""
        if fault.retry_after is not None:
            # The gate waits; the jitter keeps the waiting from arriving all at once.
            return jitter * 0.1
        wait = min(self.retry.longest_wait_s, self.retry.first_wait_s * 2.0 ** (number - 1))
        return wait * (0.5 + jitter / 2)

    def _pause_if_hopeless(self, state: _LaneState, fault: Fault) -> None:
        said = f"{fault.kind}: {fault.message[:200]}"
        if fault.lane and (not state.answered or state.lane_faults >= 3):
            state.tally.paused = state.tally.paused or (
                f"the provider refuses model or key ({said})"
            )
        elif state.failures >= self.retry.pause_after:
            state.tally.paused = state.tally.paused or (
                f"{state.failures} pairs in a row failed, last with {said}"
            )

    # -- the ledger ------------------------------------------------------------

    def _origin(self, state: _LaneState, requested_at: datetime) -> Origin:
        return Origin(self.name, self.purpose, requested_at, state.client.key.hide)

    async def _keep(self, state: _LaneState, rows: Sequence[Attempt], *, settles: bool) -> None:
        """Queue rows for the next commit; counted when durable, waited for only when many wait."""
        await self._uncommitted.acquire()

        def stored(fault: BaseException | None) -> None:
            if fault is None and self.on_stored:
                self.on_stored(rows)
            self._loop.call_soon_threadsafe(counted, fault)

        def counted(fault: BaseException | None) -> None:
            self._uncommitted.release()
            if fault is not None:
                self.fault = self.fault or fault
                self.stop(str(fault))
                return
            for row in rows:
                if row.usable:
                    setattr(state.tally, row.status, getattr(state.tally, row.status) + 1)

        self.ledger.append(rows, settles=settles, done=stored)


@dataclass
class _LaneState:
    lane: Lane
    client: Client
    gate: Gate
    provider: Gate
    tally: Tally
    failures: int = 0
    lane_faults: int = 0
    answered: bool = False
    single: bool = False

    async def pass_gates(self, tokens: int) -> None:
        """Wait for both rates, then for a place at the provider (left by the caller)."""
        delay = max(self.gate.delay(tokens), self.provider.delay(tokens))
        while delay > 0:
            await asyncio.sleep(delay)
            # A Retry-After may have come while we waited.
            delay = max(self.gate.not_before, self.provider.not_before) - time.monotonic()
        await self.provider.window.enter()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What is still wanted of a request, and how long to wait before asking again."""

    left: Request | None
    failed: bool = False
    wait: Callable[[int, float], float] = lambda number, jitter: 0.0
