"""Attempts on their way into the ledger: counted when durable, and waited for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from pipelines.calls.progress import Tally
from pipelines.ledger.attempt import Attempt
from pipelines.ledger.ledger import Ledger

OnStored = Callable[[Sequence[Attempt]], None]


class AttemptWriter:
    """The ledger as a run writes to it, live or in batches.

    Args:
        on_stored: Called in the ledger's thread once attempts are durable.
        on_fault: Called in the event loop when the ledger can keep no more, or with what
            `on_stored` raised.
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

    async def keep(
        self, rows: Sequence[Attempt], tally: Tally, *, settles: bool
    ) -> BaseException | None:
        """Return when rows are durable, and counted by `tally`; or what was raised instead.

        Who asked holds its place until then: a killed run has no more to pay twice than it has
        calls at once.
        """
        kept: asyncio.Future[BaseException | None] = self._loop.create_future()

        def stored(fault: BaseException | None) -> None:
            durable = fault is None
            if durable and self._on_stored:
                try:
                    self._on_stored(rows)
                except BaseException as error:  # `SystemExit` too is for whoever called us
                    fault = error
            # A loop that is closed, after a second Ctrl-C, has nobody left who waits.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(counted, durable, fault)

        def counted(durable: bool, fault: BaseException | None) -> None:
            if durable:
                tally.count(rows)
            if fault is not None:
                self._on_fault(fault)
            if not kept.done():
                kept.set_result(fault)

        self._ledger.append(rows, settles=settles, done=stored)
        return await kept
