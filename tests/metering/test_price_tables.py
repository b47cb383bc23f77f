"""Price tables of several days: the newest counts, and nothing contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest

from routeyard.pipelines.collect.prices import prices_from
from routeyard.pipelines.common.errors import BadInput


def row(day: str, price: float = 2.0, **more: Any) -> dict[str, Any]:
    return {"model_id": "m", "price_in": price, "price_out": 1.0, "price_date": day, **more}


def test_the_newest_of_several_days_counts_whatever_the_order() -> None:
    rows = [row("2026-01-01", 1.0), row("2026-03-01", 3.0), row("2026-02-01", 2.0)]
    for some in (rows, rows[::-1]):
        price = prices_from(some, where="here")["m"]
        assert (price.input, price.date) == (3.0, "2026-03-01")


def test_one_price_from_two_sources_is_no_contradiction() -> None:
    rows = [row("2026-01-01", price_source=source) for source in ("a page", "another page")]
    assert prices_from(rows, where="here")["m"].input == 2.0


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
def test_two_prices_for_one_day_are_an_error_in_any_order(order: tuple[int, ...]) -> None:
    rows = [row("2026-01-01", 2.0), row("2026-01-01", 3.0), row("2026-02-01", 4.0)]
    with pytest.raises(BadInput, match="gives 'm' another price for one day"):
        prices_from([rows[at] for at in order], where="here")
