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
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from pipelines.calls.attempts import Origin, answered_rows, failed_rows
from pipelines.calls.budget import Purse, worst_case
from pipelines.calls.claims import claimed
from pipelines.calls.client import Client, Sent
from pipelines.calls.lane import Lane, LaneState, Outcome, backoff
from pipelines.calls.limits import Gate
from pipelines.calls.pricing import cost_of
from pipelines.calls.progress import OnProgress, Tally, snapshot
from pipelines.calls.reply import Fault
from pipelines.calls.request import Request
from pipelines.calls.store import Keeping
from pipelines.ledger.attempt import Attempt
from pipelines.ledger.ledger import Ledger
from schemas.recipe.collect import Budget, Retry

_DRAIN_S = 30.0


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

    async with _clients(lanes, deadline_s, stream) as clients:
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


@contextlib.asynccontextmanager
async def _clients(
    lanes: Sequence[Lane], deadline_s: float, stream: bool
) -> AsyncIterator[Mapping[str, Client]]:
    """One open client per provider, with a connection for each call that may be in flight."""
    connections: Counter[str] = Counter()
    for lane in lanes:
        connections[lane.provider.name] += lane.limits.concurrency
    async with contextlib.AsyncExitStack() as stack:
        clients = {}
        for name, provider in {lane.provider.name: lane.provider for lane in lanes}.items():
            client = Client(
                provider, connections=connections[name], deadline_s=deadline_s, stream=stream
            )
            clients[name] = await stack.enter_async_context(client)
        yield clients


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
        self.tallies: dict[str, Tally] = {}
        self.stopped: str | None = None
        self.fault: BaseException | None = None
        self._stopping = asyncio.Event()
        self._keeping = Keeping(ledger, on_stored, self._fail)
        # Jitter needs no seed: it decides when to ask, never what.
        self._random = random.Random()

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self._stopping.set()

    def _fail(self, fault: BaseException) -> None:
        self.fault = self.fault or fault
        self.stop(str(fault))

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but no longer than the run lasts."""
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    # -- one model -------------------------------------------------------------

    async def lane(self, lane: Lane, client: Client, provider: Gate) -> None:
        tally = self.tallies[lane.model_id] = Tally(lane.wanted, lane.before)
        state = LaneState(lane, client, Gate(lane.limits, adaptive=True), provider, tally)
        calls: set[asyncio.Task[None]] = set()
        try:
            async for request in claimed(
                lane.requests,
                self.ledger,
                after=self.after,
                tally=tally,
                halted=lambda: bool(self.stopped or tally.paused),
                sleep=self._sleep,
            ):
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

    # -- one request -----------------------------------------------------------

    async def _request(self, state: LaneState, request: Request) -> None:
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
            self._fail(error)
        finally:
            tally.in_flight -= 1
            state.gate.window.leave()

    async def _attempt(self, state: LaneState, request: Request, *, last: bool) -> Outcome:
        """Send once and keep what came of it."""
        lane, tally = state.lane, state.tally
        reserved = 0.0
        if self.purse.limited:
            limit = request.max_tokens or lane.max_tokens
            reserved = worst_case(request, lane.price, limit) if limit else float("inf")
            if not await self.purse.reserve(lane.model_id, reserved):
                state.pause("the budget is reached")
                return Outcome(request)
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
        state: LaneState,
        request: Request,
        sent: Sent,
        requested_at: datetime,
        cost: float | None,
        source: str | None,
    ) -> Outcome:
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
        await self._keeping.keep(rows, tally, settles=True)
        if cost is None:
            tally.unpriced += count
        else:
            tally.spent_usd += cost
        if count < len(request.samples):
            # The server gave fewer than `n`: the others are asked one by one.
            state.single = True
            return Outcome(request.only(request.samples[count:]))
        return Outcome(None)

    async def _failed(
        self,
        state: LaneState,
        request: Request,
        fault: Fault,
        requested_at: datetime,
        sent_at: float,
        *,
        last: bool,
    ) -> Outcome:
        tally = state.tally
        tally.errors[fault.kind] += 1
        final = fault.permanent or last
        origin = self._origin(state, requested_at)
        rows = failed_rows(request, fault, origin, latency_s=time.monotonic() - sent_at)
        if fault.throttled:
            state.gate.window.throttled(sent_at)
        if fault.retry_after is not None:
            if fault.retry_after > self.retry.longest_retry_after_s:
                state.pause(f"asked to wait {fault.retry_after:.0f} s ({fault.kind})")
            else:
                state.gate.hold(fault.retry_after)
        if final:
            tally.failed += len(rows)
            tally.permanent += len(rows) if fault.permanent else 0
            state.failed_for_good(fault, self.retry)
        await self._keeping.keep(rows, tally, settles=final)
        if final:
            return Outcome(None, failed=True)
        return Outcome(request, failed=True, wait=partial(backoff, self.retry, fault))

    def _origin(self, state: LaneState, requested_at: datetime) -> Origin:
        return Origin(self.name, self.purpose, requested_at, state.client.key.hide)
