"""Which figure of a cost is believed: nothing missing and nothing paid becomes free."""

from __future__ import annotations

import pytest

from routeyard.pipelines.calls.pricing import Price, cost_of
from routeyard.pipelines.calls.reply import Usage, reply_from

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


def test_no_tokens_for_a_prompt_or_an_answer_are_unknown_and_not_free() -> None:
    said = {
        "choices": [{"message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}]
    }
    nothing = {"prompt_tokens": 0, "completion_tokens": 0}
    usage = reply_from({**said, "usage": nothing}).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (None, None)
    assert cost_of(usage, TABLE) == (None, None)
