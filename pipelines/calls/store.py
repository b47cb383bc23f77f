"""Attempts on their way into the ledger: counted when durable, waited for when many wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from pipelines.calls.progress import Tally
from pipelines.ledger.attempt import Attempt
from pipelines.ledger.ledger import Ledger

#: Answers that may wait for their commit before sending pauses.
UNCOMMITTED = 512

OnStored = Callable[[Sequence[Attempt]], None]


class Keeping:
    """The ledger as a run writes to it, live or in batches.

    Args:
        on_stored: Called in the ledger's thread once attempts are durable.
        on_fault: Called in the event loop when the ledger can keep no more.
    """

    def __init__(
        self,
        ledger: Ledger,
        on_stored: OnStored | None,
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._on_stored = on_stored
        self._on_fault = on_fault
        self._loop = asyncio.get_running_loop()
        self._uncommitted = asyncio.Semaphore(UNCOMMITTED)

    async def keep(
        self, rows: Sequence[Attempt], tally: Tally, *, settles: bool
    ) -> asyncio.Future[BaseException | None]:
        """Queue rows for the next commit; `tally` counts them when they are durable.

        Returns:
            Done when they are: with the fault, if they cannot be kept.
        """
        await self._uncommitted.acquire()
        kept: asyncio.Future[BaseException | None] = self._loop.create_future()

        def stored(fault: BaseException | None) -> None:
            if fault is None and self._on_stored:
                self._on_stored(rows)
            self._loop.call_soon_threadsafe(counted, fault)

        def counted(fault: BaseException | None) -> None:
            self._uncommitted.release()
            if fault is None:
                tally.count(rows)
            else:
                self._on_fault(fault)
            if not kept.done():
                kept.set_result(fault)

        self._ledger.append(rows, settles=settles, done=stored)
        return kept
