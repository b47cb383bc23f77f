"""Runs the requests of several models within limits and a budget, and stores every attempt.

Each model has a worker (`worker.py`) with its own window, rate and failure counts. A worker
claims requests in small chunks and sends them as places become free. Only requests in flight
are held in memory, so memory does not grow with the length of a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from routeyard.pipelines.calls.attempts import OnStored
from routeyard.pipelines.calls.budget import BudgetLedger
from routeyard.pipelines.calls.limits import Gate
from routeyard.pipelines.calls.model_queue import ModelQueue, Transport
from routeyard.pipelines.calls.progress import OnProgress, Tally, snapshot
from routeyard.pipelines.calls.wire.timeouts_and_sizes import Timeouts
from routeyard.pipelines.calls.worker import ModelWorker, RequestRun
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.collect import Budget, Retry

_DRAIN_S = 30.0


@dataclass(frozen=True)
class RunResult:
    """How a run ended: tallies per model, and why it stopped early, if it did."""

    tallies: Mapping[str, Tally]
    stopped: str | None
    elapsed_s: float


async def run_requests(
    queues: Sequence[ModelQueue],
    ledger: Ledger,
    *,
    after: int,
    run: str,
    purpose: str = "collect",
    retry: Retry | None = None,
    budget: BudgetLedger | None = None,
    timeouts: Timeouts | None = None,
    stream: bool = False,
    on_progress: OnProgress | None = None,
    on_stored: OnStored | None = None,
) -> RunResult:
    """Send every request of every queue; each wanted answer ends as attempts in the ledger.

    Args:
        after: `ledger.position()` when the plan was made.
        run: Name of this run, kept with each attempt.
        budget: The budget that is charged; unlimited by default.
        on_progress: Called five times a second and at the end, in the event loop.
        on_stored: Called in the ledger's thread once attempts are durable. What it raises ends
            the run: nothing more is sent, answers so far are kept, and it is raised here.

    Raises:
        BadInput: a key is not set.
        DiskFull: the ledger can keep no more.
    """
    budget = budget or BudgetLedger(Budget(), ledger)
    running = RequestRun(ledger, after, run, purpose, retry or Retry(), budget, on_stored)
    started = time.monotonic()
    async with _clients(queues, timeouts or Timeouts(), stream) as clients:
        await budget.begin(run)
        gates = {
            queue.provider.name: Gate(queue.provider.limits, adaptive=False) for queue in queues
        }
        workers = [
            ModelWorker(running, queue, clients[name], gates[name])
            for queue in queues
            for name in [queue.provider.name]
        ]
        work = [asyncio.ensure_future(worker.work()) for worker in workers]
        with progress_shown(running.tallies, started, on_progress):
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
                with contextlib.suppress(*([Exception] if running.fault else [])):
                    await budget.close()
                await asyncio.to_thread(ledger.flush)
        if running.fault is None:
            await budget.explain(running.tallies)
        for task in work:
            task.result()
    if running.fault is not None:
        raise running.fault
    return RunResult(running.tallies, running.stopped, time.monotonic() - started)


@contextlib.contextmanager
def progress_shown(
    tallies: Mapping[str, Tally], started: float, on_progress: OnProgress | None
) -> Iterator[None]:
    """Show a run's tallies five times a second, and once more when it ends."""

    def show(finished: bool) -> None:
        if on_progress:
            elapsed = time.monotonic() - started
            on_progress(snapshot(tallies, elapsed, finished=finished))

    async def tick() -> None:
        while True:
            show(False)
            await asyncio.sleep(0.2)

    ticker = asyncio.ensure_future(tick())
    try:
        yield
    finally:
        ticker.cancel()
        show(True)


@contextlib.asynccontextmanager
async def _clients(
    queues: Sequence[ModelQueue], timeouts: Timeouts, stream: bool
) -> AsyncIterator[Mapping[str, Transport]]:
    """One open client per provider, with a connection for each call that may be in flight."""
    connections: Counter[str] = Counter()
    for queue in queues:
        connections[queue.provider.name] += queue.limits.concurrency
    async with contextlib.AsyncExitStack() as stack:
        clients: dict[str, Transport] = {}
        for name, queue in {queue.provider.name: queue for queue in queues}.items():
            client = queue.transport(
                queue.provider, connections=connections[name], timeouts=timeouts, stream=stream
            )
            clients[name] = await stack.enter_async_context(client)
        yield clients
