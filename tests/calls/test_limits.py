"""Windows, rates and Retry-After, each with what would go wrong without it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import pytest

from routeyard.pipelines.collect.client import retry_after
from routeyard.pipelines.collect.runner import Gate, Rate, Window
from routeyard.schemas.recipe.collect import RateLimits


def fill(window: Window, calls: int) -> int:
    """How many of so many calls get a place without waiting."""

    async def count() -> int:
        tasks = [asyncio.ensure_future(window.enter()) for _ in range(calls)]
        await asyncio.sleep(0)
        entered = sum(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return entered

    return asyncio.run(count())


@pytest.mark.parametrize(
    ("ceiling", "expected"),
    [(16, [1, 10, 16, 16, 16]), (64, [1, 32, 64, 64, 64]), (256, [1, 128, 256, 256, 256])],
)
def test_a_window_starts_with_one_call_then_opens_to_half_and_doubles(
    ceiling: int, expected: list[int]
) -> None:
    # The first call finds out whether key and model are right.
    window = Window(ceiling)
    assert fill(window, 5) == 1
    window.leave()
    sizes = []
    for _ in range(5):
        sizes.append(int(window.size))
        for _ in range(int(window.size)):
            window.succeeded()
    assert sizes == expected
    window.succeeded()
    assert window.size == ceiling  # never above the recipe's limit


def test_a_429_halves_once_per_round_trip_then_growth_is_to_seven_eighths_and_by_one() -> None:
    window = Window(64)
    window.size = 32.0
    sent = time.monotonic()
    for _ in range(10):  # ten calls of one round
        window.throttled(sent)
    assert window.size == 16
    window.throttled(time.monotonic() + 0.001)
    assert window.size == 8
    for _ in range(6):
        window.succeeded()
    assert window.size == 14  # seven eighths of the 16 that were too many
    for _ in range(14):
        window.succeeded()
    assert 14.9 < window.size <= 15.1
    for _ in range(20):
        window.throttled(time.monotonic() + 1)
    assert window.size >= 1


def test_a_cancelled_waiter_gives_its_place_to_the_next() -> None:
    async def story() -> list[str]:
        window, entered = Window(1), []
        await window.enter()

        async def wait(name: str) -> None:
            await window.enter()
            entered.append(name)

        first, second = (asyncio.ensure_future(wait(n)) for n in "ab")
        await asyncio.sleep(0)
        first.cancel()
        window.leave()
        await second
        assert window.in_flight == 1
        return entered

    assert asyncio.run(story()) == ["b"]


def test_a_rate_spreads_requests_evenly() -> None:
    rate = Rate(600)  # ten a second
    waits = [rate.reserve(1) for _ in range(40)]
    # One second's share may go at once, the rest at a tenth of a second each.
    assert waits[9] == 0
    assert 2.8 < waits[-1] < 3.1


def test_an_estimate_of_tokens_is_corrected() -> None:
    gate = Gate(RateLimits(tokens_per_minute=60_000), adaptive=True)  # a thousand a second
    assert gate.delay(5000) == 0
    gate.correct(5000, 1000)
    assert gate.delay(1) == 0  # 1000 of the second's 1000 are used, not 5000
    gate.delay(3000)
    assert 1.9 < gate.delay(1) < 3.1


def test_requests_per_minute_by_the_clock() -> None:
    async def story() -> float:
        gate = Gate(RateLimits(requests_per_minute=1200), adaptive=True)
        started = time.monotonic()
        for _ in range(40):
            await asyncio.sleep(gate.delay(0))
        return time.monotonic() - started

    # Twenty at once, twenty more at twenty a second.
    assert asyncio.run(story()) >= 0.9


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after(headers: Mapping[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
