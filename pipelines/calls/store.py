"""Attempts on their way into the ledger: counted when durable, waited for when many wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from pipelines.calls.progress import Tally
from pipelines.ledger.attempt import Attempt
from pipelines.ledger.ledger import Ledger

#: Answers that may wait for their commit before sending pauses.
UNCOMMITTED = 512


class Keeping:
    """The ledger as a run writes to it.

    Args:
        on_stored: Called in the ledger's thread once attempts are durable.
        on_fault: Called in the event loop when the ledger can keep no more.
    """

    def __init__(
        self,
        ledger: Ledger,
        on_stored: Callable[[Sequence[Attempt]], None] | None,
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._on_stored = on_stored
        self._on_fault = on_fault
        self._loop = asyncio.get_running_loop()
        self._uncommitted = asyncio.Semaphore(UNCOMMITTED)

    async def keep(self, rows: Sequence[Attempt], tally: Tally, *, settles: bool) -> None:
        """Queue rows for the next commit; `tally` counts the usable ones when they are durable."""
        await self._uncommitted.acquire()

        def stored(fault: BaseException | None) -> None:
            if fault is None and self._on_stored:
                self._on_stored(rows)
            self._loop.call_soon_threadsafe(counted, fault)

        def counted(fault: BaseException | None) -> None:
            self._uncommitted.release()
            if fault is not None:
                self._on_fault(fault)
                return
            for row in rows:
                if row.usable:
                    setattr(tally, row.status, getattr(tally, row.status) + 1)

        self._ledger.append(rows, settles=settles, done=stored)
