"""An event loop of one simulated process: virtual time, one callback per turn, no threads."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Any


class ProcessLoop(asyncio.BaseEventLoop):
    """Runs one callback when the scheduler says so.

    Attributes:
        errors: What asyncio would have logged: an exception nobody waited for.
        in_executor: True while a function runs that the real loop would give to a thread.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._selector: Any = None
        self.errors: list[str] = []
        self.in_executor = False

    def time(self) -> float:
        return self._clock()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if "destroyed" not in str(context.get("message")):
            self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        future = self.create_future()
        self.in_executor = True
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        finally:
            self.in_executor = False
        return future

    def due(self) -> float | None:
        """Time of this loop at which its next callback is due; null for none."""
        if self._ready:
            return self._clock()
        while self._scheduled and self._scheduled[0]._cancelled:
            timer = heapq.heappop(self._scheduled)
            timer._scheduled = False
            self._timer_cancelled_count -= 1
        return self._scheduled[0]._when if self._scheduled else None

    def turn(self) -> None:
        """Run one callback that is due."""
        now = self._clock() + 1e-9
        while self._scheduled and self._scheduled[0]._when <= now:
            timer = heapq.heappop(self._scheduled)
            timer._scheduled = False
            if timer._cancelled:
                self._timer_cancelled_count -= 1
            else:
                self._ready.append(timer)
        if not self._ready:
            return
        handle = self._ready.popleft()
        if not handle._cancelled:
            asyncio._set_running_loop(self)
            try:
                handle._run()
            finally:
                asyncio._set_running_loop(None)
