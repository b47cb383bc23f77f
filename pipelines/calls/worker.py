"""A worker sends the requests of one model: claim, budget, limits, send, store, retry."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from routeyard.pipelines.calls.attempts import (
    AttemptOutcome,
    AttemptWriter,
    OnStored,
    Origin,
    answered_rows,
    failed_rows,
)
from routeyard.pipelines.calls.backoff import backoff
from routeyard.pipelines.calls.bill import (
    LeastUsage,
    UsageWatch,
    counted,
    counted_fault,
    least_usage,
)
from routeyard.pipelines.calls.budget import BudgetLedger, worst_case
from routeyard.pipelines.calls.claims import claimed, still_ours
from routeyard.pipelines.calls.client import TimedReply
from routeyard.pipelines.calls.limits import Gate
from routeyard.pipelines.calls.model_queue import ModelQueue, Transport
from routeyard.pipelines.calls.progress import Tally
from routeyard.pipelines.calls.reply import CallFault
from routeyard.pipelines.calls.request import Request
from routeyard.pipelines.ledger.attempt import is_billed
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.collect import Retry

#: Attempts without a connection after which a model that never answered is paused.
UNREACHABLE = 6
#: Longest wait between them: a wrong address is known in seconds.
_UNREACHABLE_WAIT_S = 1.0


@dataclass(eq=False)
class RequestRun:
    """State that the workers of one run share."""

    ledger: Ledger
    after: int
    name: str
    purpose: str
    retry: Retry
    budget: BudgetLedger
    on_stored: OnStored | None
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

    async def sleep(self, seconds: float) -> None:
        """Sleep, but no longer than the run lasts."""
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)


class ModelWorker:
    """Sends one model's requests, and pauses when further ones would fail as well.

    Args:
        provider: Limits that all models of the provider share.
    """

    def __init__(
        self, run: RequestRun, queue: ModelQueue, client: Transport, provider: Gate
    ) -> None:
        self.run, self.queue, self.client = run, queue, client
        self.gate, self.provider = Gate(queue.limits, adaptive=True), provider
        self.tally = run.tallies[queue.model_id] = Tally(queue.wanted, queue.before)
        run.workers.append(self)
        # Failures in a row: pairs given up, refusals of model or key, attempts without connection.
        self.failures = self.refusals = self.unreachable = 0
        #: `time.monotonic()` of the last answer; None before the first.
        self.answered_at: float | None = None
        self._usage = UsageWatch(queue.judged_after)
        #: Ask for one sample per call: the server gave fewer than `n`.
        self.single = False

        #: How requests are claimed.
        self._how: dict[str, Any] = {
            "ledger": run.ledger,
            "after": run.after,
            "tally": self.tally,
            "halted": lambda: self.halted,
            "sleep": run.sleep,
        }

    @property
    def halted(self) -> bool:
        return bool(self.run.stopped or self.tally.paused)

    async def work(self) -> None:
        """Send every request of the queue; returns when the last call has ended."""
        calls: set[asyncio.Task[None]] = set()
        try:
            async for request in claimed(self.queue.requests, **self._how):
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
            while left and (left := await still_ours(left, **self._how)):
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
        if budget.limited:
            worst = worst_case(request, queue.price, request.max_tokens or queue.max_tokens)
            granted = await budget.reserve(queue.model_id, worst, self.tally)
            if granted is None:
                self.tally.out_of_budget |= self.tally.paused is None
                self.pause(budget.full(queue.model_id))
                return AttemptOutcome(request, sent=False)
            charge = granted
        expected = request.tokens_expected + (request.max_tokens or 0) * len(request.samples)
        spent: float | None = 0.0
        placed = False
        try:
            placed = await self._pass_gates(expected)
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
                least = least_usage(request.messages, (), queue.tokens_per_word, trusted)
            sent = await self.client.complete(
                request.settings.endpoint, request.body(stream=self.client.streams)
            )
            if charge:
                cached = max(trusted, budget.cached(request))
                choices = sent.reply.choices
                least = least_usage(request.messages, choices, queue.tokens_per_word, cached)
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
            if fault.retry_after > retry.longest_retry_after_s:
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
            self.pause(
                f"nobody answers at the address of provider {self.queue.provider.name!r}, "
                f"{self.unreachable} times in a row ({fault.kind}: {fault.message[:200]}); "
                "start the server, or correct 'base_url'"
            )

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
            self.pause(f"{self.failures} pairs in a row failed, last with {fault.words}")

    def _stop_provider(self, fault: CallFault) -> None:
        """Pause the provider's models; those that it answers find out for themselves."""
        for one in self.run.workers:
            if one.queue.provider.name == self.queue.provider.name and one.answered_at is None:
                one.tally.set_up.setdefault(fault.words, 0)
                one.pause(f"the provider refuses model or key ({fault.words})")
