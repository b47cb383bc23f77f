"""Asks many requests of many models, within limits and budget, into a ledger.

Each model has a lane of its own: its window, its rate, its failures. A lane
claims requests in small chunks, sends them as places become free, and keeps
every attempt. Nothing is held per request but what is in flight, so memory
does not grow with the length of a run. `run.py` is the loop itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelines.calls.attempt_writer import OnStored
from pipelines.calls.budget import BudgetLedger
from pipelines.calls.limits import Gate
from pipelines.calls.model_queue import ModelQueue, Transport
from pipelines.calls.progress import OnProgress, Tally, snapshot
from pipelines.calls.wire.timeouts_and_sizes import Timeouts
from pipelines.calls.worker import RequestRun
from pipelines.ledger.ledger import Ledger
from schemas.recipe.collect import Budget, Retry

_DRAIN_S = 30.0


@dataclass(frozen=True)
class RunResult:
    """How a run ended: tallies per model, and why it stopped early, if it did."""

    tallies: Mapping[str, Tally]
    stopped: str | None
    elapsed_s: float


async def run_requests(
    lanes: Sequence[ModelQueue],
    ledger: Ledger,
    *,
    after: int,
    run: str,
    purpose: str = "collect",
    retry: Retry | None = None,
    purse: BudgetLedger | None = None,
    patience: Timeouts | None = None,
    stream: bool = False,
    on_progress: OnProgress | None = None,
    on_stored: OnStored | None = None,
) -> RunResult:
    """Ask every request of every lane; each wanted answer ends as attempts in the ledger.

    Args:
        after: `ledger.position()` when the plan was made.
        run: Name of this run, kept with each attempt.
        purse: Whose money is spent; unlimited by default.
        on_progress: Called five times a second and at the end, in the event loop.
        on_stored: Called in the ledger's thread once attempts are durable. What it raises ends
            the run: nothing more is asked, what was is kept, and it is raised here.

    Raises:
        BadInput: a key is not set.
        DiskFull: the ledger can keep no more.
    """
    purse = purse or BudgetLedger(Budget(), ledger)
    running = RequestRun(ledger, after, run, purpose, retry or Retry(), purse, on_stored)
    started = time.monotonic()
    async with _clients(lanes, patience or Timeouts(), stream) as clients:
        await purse.begin(run)
        gates = {lane.provider.name: Gate(lane.provider.limits, adaptive=False) for lane in lanes}
        work = [
            asyncio.ensure_future(
                running.lane(lane, clients[lane.provider.name], gates[lane.provider.name])
            )
            for lane in lanes
        ]
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
                    await purse.close()
                await asyncio.to_thread(ledger.flush)
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
    lanes: Sequence[ModelQueue], patience: Timeouts, stream: bool
) -> AsyncIterator[Mapping[str, Transport]]:
    """One open client per provider, with a connection for each call that may be in flight."""
    connections: Counter[str] = Counter()
    for lane in lanes:
        connections[lane.provider.name] += lane.limits.concurrency
    async with contextlib.AsyncExitStack() as stack:
        clients: dict[str, Transport] = {}
        for name, lane in {lane.provider.name: lane for lane in lanes}.items():
            client = lane.transport(
                lane.provider, connections=connections[name], patience=patience, stream=stream
            )
            clients[name] = await stack.enter_async_context(client)
        yield clients
