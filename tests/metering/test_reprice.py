"""Costs under another table: as the client computes them, cached tokens included."""

from __future__ import annotations

from importlib.resources import files
from itertools import product

import duckdb
import pytest
import yaml

from routeyard.pipelines.collect.budget import Price
from routeyard.pipelines.collect.prices import PriceTable, reprice
from routeyard.schemas import MODELS, RESPONSES

PRICES = [
    Price(1.0, 2.0, "2026-11-01"),
    Price(1.0, 2.0, "2026-11-01", cache_read=0.1, cache_write=1.25),
    Price(0.0, 2.0, "2026-11-01"),
    Price(1.0, 2.0, "2026-11-01", cache_read=0.1, up_to=50),
    Price(1.0, 2.0, "2026-11-01", cache_read=0.1, up_to=99, beyond=Price(3.0, 4.0, cache_read=2.0)),
]
COUNTS = [(100, 10, read, write) for read, write in product((None, 0, 60, 101), (None, 0, 30))] + [
    (None, 10, 5, 5),
    (100, None, 5, 5),
    (0, 10, 0, 0),
]


@pytest.mark.parametrize("price", PRICES)
def test_a_table_costs_what_the_client_would_have_charged(price: Price) -> None:
    names = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")
    rows = [
        {"query_id": f"q{k}", "model_id": "m", "sample": 0, "text": "a", "status": "ok",
         "attempts": 1, **dict(zip(names, counts, strict=True))}
        for k, counts in enumerate(COUNTS)
    ]  # fmt: skip
    models = MODELS.from_rows([{"model_id": "m", "kind": "real", "simulated": False}])
    found = reprice(RESPONSES.from_rows(rows), models, PriceTable({"m": price})).responses
    expected = [price.of(*counts) for counts in COUNTS]
    for cost, one in zip(found.column("cost_usd").to_pylist(), expected, strict=True):
        assert cost == (None if one is None else pytest.approx(one, abs=1e-15))
    # `verify` computes it in SQL of its own, from the tables of a release.
    rules = yaml.safe_load(
        files("routeyard.pipelines.release").joinpath("checks/rules.yaml").read_text()
    )
    by_table, source = rules["cost by the price table"], rules["responses"]["from"]
    with duckdb.connect() as connection:
        connection.register("responses", found)
        connection.register("models", MODELS.from_rows([models.to_pylist()[0] | price.columns]))
        verified = connection.sql(f"SELECT {by_table} FROM {source} ORDER BY query_id").fetchall()
    names = sorted(range(len(COUNTS)), key=lambda k: f"q{k}")
    for (cost,), one in zip(verified, (expected[k] for k in names), strict=True):
        assert cost == (None if one is None else pytest.approx(one, abs=1e-15))
