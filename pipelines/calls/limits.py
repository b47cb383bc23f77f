"""How much is asked at once and per minute, for a provider and for a model.

The window is TCP's (Chiu and Jain 1989, additive increase, multiplicative
decrease): the first answer opens it to ten (RFC 6928), or to half of what the recipe
lets be asked at once where that is more; it doubles per round trip
until the first 429 and is halved by each round of 429s; then it doubles up to seven
eighths of where it was, and grows by one per round trip from there. The rate is a virtual
scheduling algorithm (GCRA, ITU-T I.371): no burst above one second's share.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from routeyard.schemas.recipe.collect import RateLimits

#: The window after the first answer, or that share of the ceiling, and the share of a throttled
#: window that is safe again.
_OPENED, _HALF, _SAFE = 10.0, 1 / 2, 7 / 8


class Window:
    """Calls in flight, between 1 and `ceiling`.

    A fixed window (`adaptive=False`) stays at the ceiling.
    """

    def __init__(self, ceiling: int, *, adaptive: bool = True) -> None:
        self.ceiling = ceiling
        self.size = 1.0 if adaptive else float(ceiling)
        self.in_flight = 0
        self._adaptive = adaptive
        #: Below this the window doubles per round trip; above it grows by one.
        self._doubles_to = float(ceiling)
        self._halved_at = -1.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Wait for a place; whoever came first goes first."""
        if not self._waiting and self.in_flight < int(self.size):
            self.in_flight += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        self.in_flight -= 1
        self._admit()

    def succeeded(self) -> None:
        """An answer came: grow."""
        if self._adaptive and self.size < self.ceiling:
            if self.size == 1.0 and self._doubles_to == self.ceiling:
                self.size = min(max(_OPENED, self.ceiling * _HALF), self.ceiling)
            elif self.size < self._doubles_to:
                self.size = min(self._doubles_to, self.size + 1.0)
            else:
                self.size = min(float(self.ceiling), self.size + 1.0 / self.size)
            self._admit()

    def throttled(self, sent_at: float) -> None:
        """A 429 came: halve, once per round trip.

        Args:
            sent_at: `time.monotonic()` at which that call was sent; calls sent
                before the last halving say nothing about the window since.
        """
        if self._adaptive and sent_at > self._halved_at:
            self._doubles_to = self.size * _SAFE
            self.size = max(1.0, self.size / 2)
            self._halved_at = time.monotonic()

    def _admit(self) -> None:
        while self._waiting and self.in_flight < int(self.size):
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)


class Rate:
    """At most `per_minute` units a minute, spread evenly (GCRA)."""

    def __init__(self, per_minute: float) -> None:
        self._seconds = 60.0 / per_minute
        self._next = 0.0

    def reserve(self, units: float) -> float:
        """Take units and return the seconds to wait before using them."""
        now = time.monotonic()
        # One second of unused share may be caught up, at most.
        start = max(self._next, now - 1.0)
        self._next = start + units * self._seconds
        return max(0.0, start - now)

    def correct(self, units: float) -> None:
        """Give back (or take) units that an estimate had wrong."""
        self._next -= units * self._seconds


class Gate:
    """What one model or one provider lets through."""

    def __init__(self, limits: RateLimits, *, adaptive: bool) -> None:
        self.window = Window(limits.concurrency, adaptive=adaptive)
        self._requests = Rate(limits.requests_per_minute) if limits.requests_per_minute else None
        self._tokens = Rate(limits.tokens_per_minute) if limits.tokens_per_minute else None
        #: `time.monotonic()` before which nothing is sent (Retry-After).
        self.not_before = 0.0

    def delay(self, tokens: int) -> float:
        """Seconds to wait before a call of that many tokens may be sent."""
        wait = self.not_before - time.monotonic()
        if self._requests:
            wait = max(wait, self._requests.reserve(1))
        if self._tokens:
            wait = max(wait, self._tokens.reserve(tokens))
        return max(0.0, wait)

    def correct(self, expected: int, metered: int | None) -> None:
        """Replace an expected token count by the metered one."""
        if self._tokens and metered is not None:
            self._tokens.correct(expected - metered)

    def hold(self, seconds: float) -> None:
        """Send nothing for so long."""
        self.not_before = max(self.not_before, time.monotonic() + seconds)
