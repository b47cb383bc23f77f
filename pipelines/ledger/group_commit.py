"""One writing thread that commits what waits in groups.

What came during one commit makes the next: no attempt waits for others, and durability costs a
share of one disk flush per call where many are asked at once.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from routeyard.pipelines.ledger.attempt import Attempt

#: Called from the ledger's thread once the attempts are durable, or with the fault.
Acknowledge = Callable[[BaseException | None], None]
#: Appended attempts that one commit takes at most.
_MOST = 512


@dataclass(frozen=True, slots=True)
class Appended:
    """Attempts that wait for a commit and whoever waits for them."""

    attempts: Sequence[Attempt]
    settles: bool
    done: Acknowledge


class GroupCommit:
    """Runs a store's writes in order on one thread.

    Args:
        commit: Makes a group durable, or raises.
        run: Runs one piece of work in a separate transaction, or raises.
        idle: Called every `idle_seconds`, busy or not, at most one piece of work later.
        now: Seconds by a clock that nobody sets.

    After a fault nothing more is accepted, and every waiting caller gets it:
    an answer that is not kept would be paid for twice.

    Attributes:
        failed: Why nothing more is kept.
        untold: The first error of an `Acknowledge`. What it was to hear of is kept, and so
            is what comes later; but whoever waits for it may wait in vain.
    """

    def __init__(
        self,
        *,
        commit: Callable[[Sequence[Appended]], None],
        run: Callable[[Callable[[Any], Any]], Any],
        idle: Callable[[], None],
        idle_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._commit, self._run, self._idle = commit, run, idle
        self._idle_seconds, self._now = idle_seconds, now
        self._queue: queue.SimpleQueue[Appended | _Task | None] = queue.SimpleQueue()
        self._rested = now()
        self.failed: BaseException | None = None
        self.untold: BaseException | None = None
        self._begin()

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._write, name="ledger", daemon=True)
        self._thread.start()

    def append(self, item: Appended) -> None:
        """Queue for the next group."""
        self._queue.put(item)

    def submit(self, work: Callable[[Any], Any]) -> Future[Any]:
        """Run after everything that was queued before it is durable, unless it was cancelled."""
        task = _Task(work, Future())
        self._queue.put(task)
        return task.future

    def stop(self) -> None:
        """Return when all that was queued is done."""
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        while self.work(max(0.0, self._rested + self._idle_seconds - self._now())):
            pass

    def work(self, wait_s: float) -> bool:
        """Do all that is queued, after waiting so long for the first of it; false once stopped."""
        waiting: list[Appended] = []
        with contextlib.suppress(queue.Empty):
            item = self._queue.get(wait_s > 0, wait_s)
            while item is not None:
                if isinstance(item, Appended):
                    waiting.append(item)
                else:
                    waiting = self._keep(waiting)
                    self._perform(item)
                if len(waiting) >= _MOST:
                    waiting = self._keep(waiting)
                item = self._queue.get_nowait()
            self._keep(waiting)
            return False
        self._keep(waiting)
        self._rest_in_time()
        return True

    def _keep(self, waiting: list[Appended]) -> list[Appended]:
        if not waiting:
            return waiting
        if self.failed is None:
            self._guard(lambda: self._commit(waiting))
        for item in waiting:
            try:
                item.done(self.failed)
            except BaseException as error:  # even `SystemExit` would end this thread in silence
                self.untold = self.untold or error
        self._rest_in_time()
        return []

    def _rest_in_time(self) -> None:
        # Who works steadily never waits in vain, and would be taken for silent.
        if self._now() - self._rested >= self._idle_seconds:
            self._guard(self._idle)
            self._rested = self._now()

    def _perform(self, task: _Task) -> None:
        if not task.future.set_running_or_notify_cancel():
            return  # nobody waits for it: what it claimed or charged would be held for nobody
        results: list[Any] = []
        if self.failed is None:
            self._guard(lambda: results.append(self._run(task.work)))
        if self.failed is not None:
            task.future.set_exception(self.failed)
        else:
            task.future.set_result(results[0])
        self._rest_in_time()

    def _guard(self, work: Callable[[], object]) -> None:
        if self.failed is not None:
            return
        try:
            work()
        except Exception as error:  # any fault ends the ledger, and its callers get it
            self.failed = error


@dataclass(frozen=True, slots=True)
class _Task:
    work: Callable[[Any], Any]
    future: Future[Any]
