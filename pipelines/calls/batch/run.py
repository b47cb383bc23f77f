"""The batch endpoints as another transport: submit, poll, import row by row.

A batch is noted in the ledger before it is created, with everything that its
results need, and its keys stay claimed while a process waits for it. A killed
run finds its batches again: by their id, or by our name in their metadata when
it was killed between creating and noting. What was imported is not imported
twice. Budget, keeping and counting are those of live calls.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from routeyard.pipelines.calls.attempts import (
    AttemptWriter,
    OnStored,
)
from routeyard.pipelines.calls.batch.open_batches import OpenBatches
from routeyard.pipelines.calls.budget import BudgetLedger
from routeyard.pipelines.calls.claims import HELD_WAIT_S
from routeyard.pipelines.calls.client import Client
from routeyard.pipelines.calls.model_queue import ModelQueue
from routeyard.pipelines.calls.progress import OnProgress, Tally
from routeyard.pipelines.calls.runner import RunResult, progress_shown
from routeyard.pipelines.calls.wire.timeouts_and_sizes import Timeouts
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.collect import BatchSettings


async def run_batches(
    queues: Sequence[ModelQueue],
    ledger: Ledger,
    *,
    after: int,
    run: str,
    budget: BudgetLedger,
    batch: BatchSettings,
    purpose: str = "collect",
    timeouts: Timeouts | None = None,
    on_progress: OnProgress | None = None,
    on_stored: OnStored | None = None,
) -> RunResult:
    """As `runner.run_requests`, through `/v1/files` and `/v1/batches`.

    Batches that an earlier run left are waited for first. Time to answer is not
    kept: it says nothing of the model.
    """
    named = {queue.model_id: queue for queue in queues}
    tallies = {name: Tally(queue.wanted, queue.before) for name, queue in named.items()}
    # A fault of the ledger is raised where its rows are waited for.
    keeping = AttemptWriter(ledger, on_stored, lambda fault: None)
    batches = OpenBatches(named, ledger, after, run, purpose, budget, batch, keeping, tallies)
    started = time.monotonic()
    timeouts = timeouts or Timeouts()
    for queue in queues:
        name = queue.provider.name
        if name not in batches.clients:
            batches.clients[name] = Client(queue.provider, connections=8, timeouts=timeouts)
    with progress_shown(batches.tallies, started, on_progress):
        try:
            await budget.begin(run)
            await batches.resume()
            for queue in queues:
                await batches.submit(queue)
            while batches.open or batches.held_elsewhere():
                await batches.resume()
                await batches.poll()
                if batches.open:
                    await asyncio.sleep(batch.poll_s)
                elif batches.held_elsewhere():
                    await asyncio.sleep(min(batch.poll_s, HELD_WAIT_S))
        finally:
            for client in batches.clients.values():
                await client.__aexit__(None, None, None)
            await budget.close()
            await asyncio.to_thread(ledger.flush)
    await budget.explain(batches.tallies)
    return RunResult(batches.tallies, None, time.monotonic() - started)
