"""The loop of a run: claim, budget, limits, send, keep, count, and ask again."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from pipelines.calls.attempt_writer import AttemptWriter, OnStored
from pipelines.calls.attempts import Origin, answered_rows, failed_rows
from pipelines.calls.budget import BudgetLedger, counted, worst_case
from pipelines.calls.claims import claimed
from pipelines.calls.client import TimedReply
from pipelines.calls.limits import Gate
from pipelines.calls.model_queue import AttemptOutcome, ModelQueue, QueueState, Transport
from pipelines.calls.progress import Tally
from pipelines.calls.reply import CallFault, ModelReply
from pipelines.calls.request import Request
from pipelines.ledger.attempt import is_billed
from pipelines.ledger.ledger import Ledger
from schemas.recipe.collect import Retry


class RequestRun:
    """State that the lanes of one run share."""

    def __init__(
        self,
        ledger: Ledger,
        after: int,
        run: str,
        purpose: str,
        retry: Retry,
        purse: BudgetLedger,
        on_stored: OnStored | None,
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
        self._keeping = AttemptWriter(ledger, on_stored, self._fail)
        # Jitter needs no seed: it decides when to ask, never what.
        self._random = random.Random()

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self._stopping.set()

    def _fail(self, fault: BaseException) -> None:
        self.fault = self.fault or fault
        self.stop(str(fault) or type(fault).__name__)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but no longer than the run lasts."""
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    # -- one model -------------------------------------------------------------

    async def lane(self, lane: ModelQueue, client: Transport, provider: Gate) -> None:
        """Ask everything of one lane."""
        tally = self.tallies[lane.model_id] = Tally(lane.wanted, lane.before)
        state = QueueState(lane, client, Gate(lane.limits, adaptive=True), provider, tally)
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

    async def _request(self, state: QueueState, request: Request) -> None:
        tally = state.tally
        tally.in_flight += 1
        left, failed = request, False
        try:
            for number in itertools.count(1):
                outcome = await self._attempt(state, left, last=number >= self.retry.attempts)
                if outcome.left is None:
                    return
                failed |= outcome.failed
                left = replace(outcome.left, billed=outcome.left.billed + outcome.billed)
                if not (self.stopped or tally.paused):
                    await self._sleep(outcome.wait(number, self._random.random()))
                if self.stopped or tally.paused:
                    tally.failed += len(left.samples) if failed else 0
                    self.ledger.release(left.keys)
                    return
        except Exception as error:
            self._fail(error)
        finally:
            tally.in_flight -= 1
            state.gate.window.leave()

    async def _attempt(self, state: QueueState, request: Request, *, last: bool) -> AttemptOutcome:
        """Send once and keep what came of it; its places are free again when that is durable."""
        lane, tally = state.lane, state.tally
        charge = ""
        if self.purse.limited:
            worst = worst_case(request, lane.price, request.max_tokens or lane.max_tokens)
            granted = await self.purse.reserve(lane.model_id, worst)
            if granted is None:
                tally.out_of_budget |= tally.paused is None
                state.pause(self.purse.full(lane.model_id))
                return AttemptOutcome(request)
            charge = granted
        expected = request.tokens_expected + (request.max_tokens or 0) * len(request.samples)
        spent: float | None = 0.0
        placed = False
        try:
            placed = await state.pass_gates(expected, self._sleep, lambda: bool(self.stopped))
            if self.stopped or tally.paused:
                # While it waited. Who is still asked may have its share of the rates.
                state.gate.correct(expected, 0)
                state.provider.correct(expected, 0)
                return AttemptOutcome(request)
            tally.asked += 1
            requested_at = datetime.now(UTC)
            sent_at = time.monotonic()
            spent = None
            sent = await state.client.complete(
                request.settings.endpoint, request.body(stream=state.client.streams)
            )
            _refuse(lane, sent.reply)
        except CallFault as fault:
            spent = None if fault.maybe_billed else 0.0
            if fault.usage is not None:
                spent = counted(fault.usage, lane.price)
            return await self._failed(state, request, fault, requested_at, sent_at, last=last)
        else:
            state.gate.window.succeeded()
            spent = counted(sent.reply.usage, lane.price)
            tokens = sent.reply.usage.total_tokens
            state.gate.correct(expected, tokens)
            state.provider.correct(expected, tokens)
            return await self._answered(state, request, sent, requested_at)
        finally:
            if placed:
                state.provider.window.leave()
            await self.purse.settle(charge, spent)

    async def _answered(
        self, state: QueueState, request: Request, sent: TimedReply, requested_at: datetime
    ) -> AttemptOutcome:
        state.failures = state.lane_faults = state.unreachable = 0
        state.answered = True
        origin = Origin(self.name, self.purpose, requested_at, state.lane.price)
        rows = answered_rows(
            request, sent.reply, origin, latency_s=sent.latency_s, ttft_s=sent.ttft_s
        )
        await self._keeping.keep(rows, state.tally, settles=True)
        if len(rows) < len(request.samples):
            # The server gave fewer than `n`: the others are asked one by one.
            state.single = True
            return AttemptOutcome(request.only(request.samples[len(rows) :]))
        return AttemptOutcome(None)

    async def _failed(
        self,
        state: QueueState,
        request: Request,
        fault: CallFault,
        requested_at: datetime,
        sent_at: float,
        *,
        last: bool,
    ) -> AttemptOutcome:
        tally = state.tally
        tally.errors[fault.kind] += 1
        origin = Origin(self.name, self.purpose, requested_at, state.lane.price)
        rows = failed_rows(request, fault, origin, latency_s=time.monotonic() - sent_at)
        billed = is_billed(rows[0])
        most = state.lane.unanswered_after
        unanswered = billed and most is not None and request.billed + 1 >= most
        final = fault.permanent or last or unanswered
        if fault.throttled:
            state.gate.window.throttled(sent_at)
        if fault.retry_after is not None:
            if fault.retry_after > self.retry.longest_retry_after_s:
                state.pause(f"asked to wait {fault.retry_after:.0f} s ({fault.kind})")
            else:
                state.gate.hold(fault.retry_after)
        state.failed_once(fault)
        if final:
            tally.gave_up(rows, unanswered=unanswered)
            state.failed_for_good(fault, self.retry)
        await self._keeping.keep(rows, tally, settles=final)
        if final:
            return AttemptOutcome(None, failed=True)
        wait = partial(state.wait, self.retry, fault)
        return AttemptOutcome(request, failed=True, billed=billed, wait=wait)


def _refuse(lane: ModelQueue, reply: ModelReply) -> None:
    """Raise what is wrong with a reply for whoever asked."""
    if lane.unusable and (fault := lane.unusable(reply)) is not None:
        fault.usage = reply.usage
        raise fault
