"""Requests that another process holds come last, and whoever waits for them says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

from routeyard.pipelines.collect.budget import Tally
from routeyard.pipelines.collect.request import CHAT_COMPLETIONS, Request, RequestSettings
from routeyard.pipelines.collect.runner import Claims
from routeyard.pipelines.collect.sqlite import SqliteLedger

SETTINGS = RequestSettings("p", CHAT_COMPLETIONS, "m", {})


def request(number: int) -> Request:
    messages = [{"role": "user", "content": f"q{number}"}]
    name = SETTINGS.request_hash(messages)
    return Request(f"q{number}", "m", SETTINGS, messages, (0,), name)


def test_what_others_hold_is_counted_while_it_is_waited_for(tmp_path: Path) -> None:
    wanted = [request(number) for number in range(5)]
    tally = Tally(wanted=5)
    path = tmp_path / "l.sqlite"
    with SqliteLedger(path) as other, SqliteLedger(path) as ours:
        theirs = [key for one in wanted[:2] for key in one.keys]
        assert other.claim(theirs, after=0).result().granted
        waited: list[int] = []

        async def sleep(seconds: float) -> None:
            waited.append(tally.held)
            other.release(theirs)
            other.flush()

        async def all_of_them() -> list[str]:
            claims = Claims(ours, 0, tally, lambda: False, sleep)
            return [one.query_id async for one in claims.each(iter(wanted))]

        assert asyncio.run(all_of_them()) == ["q2", "q3", "q4", "q0", "q1"]
    assert waited == [2]
    assert tally.held == 0
