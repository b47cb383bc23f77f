"""Which requests are ours to send, where several processes want the same ones."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

from routeyard.pipelines.calls.progress import Tally
from routeyard.pipelines.calls.request import Request
from routeyard.pipelines.ledger.ledger import Ledger

#: Requests claimed at once; so many a killed process holds at most until its lease is over.
CHUNK = 64
#: Seconds between looks at what other processes hold.
HELD_WAIT_S = 0.5


class _Claimed(NamedTuple):
    granted: list[Request]
    held: list[Request]
    settled: int
    size: int


async def claimed(
    source: Iterator[Request],
    ledger: Ledger,
    *,
    after: int,
    tally: Tally,
    halted: Callable[[], bool],
    sleep: Callable[[float], Awaitable[None]],
) -> AsyncIterator[Request]:
    """Requests that are ours to send; those another process holds come last.

    The next chunk is claimed while this one is sent. What was claimed and not
    given out when the run halts is released.

    Args:
        after: `ledger.position()` when the plan was made; what was settled since then
            counts in `tally.elsewhere`.
    """
    held: list[Request] = []
    upcoming = _claim(ledger, list(itertools.islice(source, CHUNK)), after)
    while True:
        granted, waiting, settled, size = await upcoming
        tally.elsewhere += settled
        held += waiting
        tally.held = 0 if size else sum(len(one.samples) for one in held)
        if size:
            upcoming = _claim(ledger, list(itertools.islice(source, CHUNK)), after)
        for position, request in enumerate(granted):
            if halted():
                for rest in granted[position:]:
                    ledger.release(rest.keys)
                if size:
                    for rest in (await upcoming).granted:
                        ledger.release(rest.keys)
                return
            yield request
        if not size:
            if not held or halted():
                return
            await sleep(HELD_WAIT_S)
            again, held = held, []
            upcoming = _claim(ledger, again, after, last=True)


async def still_ours(
    request: Request,
    ledger: Ledger,
    *,
    after: int,
    tally: Tally,
    halted: Callable[[], bool],
    sleep: Callable[[float], Awaitable[None]],
) -> Request | None:
    """What is left to send of a claimed request whose lease may have lapsed; null for nothing.

    What another process holds by now is waited for.
    """
    left: Request | None = request
    while left and not halted() and not ledger.holds(left.keys):
        claim = await asyncio.wrap_future(ledger.claim(left.keys, after=after))
        tally.elsewhere += len(claim.settled)
        wanted = {*claim.granted, *claim.held}
        left = left.only(s for h, s in left.keys if (h, s) in wanted)
        if not claim.held:
            break
        await sleep(HELD_WAIT_S)
    return left


def _claim(
    ledger: Ledger, requests: list[Request], after: int, *, last: bool = False
) -> asyncio.Future[_Claimed]:
    return asyncio.ensure_future(_claim_now(ledger, requests, after, last))


async def _claim_now(ledger: Ledger, requests: list[Request], after: int, last: bool) -> _Claimed:
    """What is granted, what others hold, answers settled since the plan, and the chunk's size."""
    if not requests:
        return _Claimed([], [], 0, 0)
    keys = [key for request in requests for key in request.keys]
    claim = await asyncio.wrap_future(ledger.claim(keys, after=after))
    ours, theirs = set(claim.granted), set(claim.held)
    granted: list[Request] = []
    held: list[Request] = []
    for request in requests:
        for wanted, kept in ((ours, granted), (theirs, held)):
            part = request.only(s for h, s in request.keys if (h, s) in wanted)
            if part:
                kept.append(part)
    return _Claimed(granted, held, len(claim.settled), 0 if last else len(requests))
