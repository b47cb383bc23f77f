"""Which figure of a cost is believed: nothing missing and nothing paid becomes free."""

from __future__ import annotations

import pytest

from routeyard.pipelines.collect.budget import Price, cost_of
from routeyard.pipelines.collect.reply import Usage

TABLE = Price(input=1.0, output=2.0)
#: 10 and 2 tokens at these prices.
BY_TABLE = 14e-6


@pytest.mark.parametrize(
    ("told", "counts", "price", "cost"),
    [
        (20e-6, (10, 2), TABLE, (20e-6, "provider")),
        (13.95e-6, (10, 2), TABLE, (13.95e-6, "provider")),  # rounded
        (1e-300, (10, 2), TABLE, (BY_TABLE, "price_table")),  # a lie
        (0.34 * BY_TABLE, (10, 2), TABLE, (BY_TABLE, "price_table")),
        (0.0, (10, 2), TABLE, (BY_TABLE, "price_table")),
        (0.0, (None, None), TABLE, (None, None)),  # nothing to hold it against: not free
        (0.0, (10, 2), Price(0.0, 0.0), (0.0, "provider")),  # a local server
        (0.0, (10, 2), Price(1.0, None), (None, None)),  # not free, though only half is stated
        (5e-6, (10, 2), Price(), (5e-6, "provider")),
        (None, (10, 2), TABLE, (BY_TABLE, "price_table")),
        (None, (None, 2), TABLE, (None, None)),
    ],
)
def test_a_cost_below_the_table_is_not_believed(
    told: float | None,
    counts: tuple[int | None, int | None],
    price: Price,
    cost: tuple[float | None, str | None],
) -> None:
    usage = Usage(prompt_tokens=counts[0], completion_tokens=counts[1], cost_usd=told)
    assert cost_of(usage, price) == (pytest.approx(cost[0]) if cost[0] else cost[0], cost[1])


CACHED = Price(input=1.0, output=2.0, cache_read=0.1, cache_write=1.25)


@pytest.mark.parametrize(
    ("price", "counts", "usd"),
    [
        (CACHED, (100, 10, 60, 30), 10 + 6 + 37.5 + 20),
        (CACHED, (100, 10, None, None), 120),  # what is not told is not taken to be cached
        (CACHED, (100, 10, 0, 0), 120),
        (TABLE, (100, 10, 60, 0), None),  # read at a price that nobody states
        (TABLE, (100, 10, 0, 1), None),
        (Price(0.0, 2.0), (100, 10, 60, 0), 20),  # prompts are free, also from the cache
        (CACHED, (100, 10, 60, 41), None),  # more cached than there was
    ],
)
def test_cached_tokens_have_a_price_of_their_own(
    price: Price, counts: tuple[int, int, int | None, int | None], usd: float | None
) -> None:
    found = price.of(*counts)
    assert found == (None if usd is None else pytest.approx(usd / 1e6, abs=1e-15))


def test_a_bill_below_the_price_of_fresh_prompts_is_believed_where_the_cache_explains_it() -> None:
    # OpenRouter bills cached prompts at a tenth: that was taken for a lie before.
    usage = Usage(1000, 10, cost_usd=220e-6, cache_read_tokens=900)
    assert cost_of(usage, CACHED) == (220e-6, "provider")
    assert cost_of(Usage(1000, 10, cost_usd=220e-6), CACHED) == (1020e-6, "price_table")
