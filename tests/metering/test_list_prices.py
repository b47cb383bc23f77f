"""List prices: of an exact provider and model, with a day, or unknown; nothing is fetched."""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import yaml
from genai_prices import Usage
from genai_prices.data import providers

from routeyard.flows.recipe import load, notes_of
from routeyard.pipelines.collect import prices as list_prices
from routeyard.pipelines.collect.budget import Price
from routeyard.pipelines.collect.prices import list_price, stale
from routeyard.pipelines.common.errors import RecipeError
from routeyard.pipelines.common.pool import models_table, published_size

OPENAI = "https://api.openai.com/v1"


def test_a_price_of_an_exact_provider_and_model_has_its_day_and_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def connect(*_: object) -> None:
        raise AssertionError("the list of prices asked the network")

    monkeypatch.setattr(socket.socket, "connect", connect)
    # The figures of OpenAI's page that FACTS of any reader can check: 0.15 and 0.60 USD.
    price = list_price(OPENAI, "gpt-4o-mini")
    assert price == Price(
        0.15, 0.6, "2026-11-10", "genai-prices 0.2.3, openai/gpt-4o-mini", cache_read=0.075
    )
    assert list_price("openai", "GPT-4o-mini") == price


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        (OPENAI, "gpt-4o-mini-of-mine"),  # begins like a listed one
        (OPENAI, "openai/gpt-4o-mini"),  # a name of another provider
        ("https://api.openai.com.example.org/v1", "gpt-4o-mini"),  # begins like its address
        ("https://x.openai.azure.com/openai", "gpt-4o"),  # customers name deployments
        ("https://api.deepseek.com", "deepseek-chat"),  # its price depends on the hour
        ("somebody", "gpt-4o-mini"),
        (None, "gpt-4o-mini"),
    ],
)
def test_what_is_not_exact_has_no_price(provider: str | None, model: str) -> None:
    assert list_price(provider, model) is None


def test_a_long_prompt_makes_the_whole_call_dearer() -> None:
    price = list_price("https://api.anthropic.com/v1", "claude-sonnet-4-5")
    assert price is not None
    assert (price.input, price.output, price.up_to) == (3.0, 15.0, 200_000)
    assert price.of(200_000, 1_000) == pytest.approx(0.615, abs=1e-12)
    assert price.of(200_001, 1_000) == pytest.approx(200_001 * 6e-6 + 1_000 * 22.5e-6, abs=1e-12)
    assert replace(price, beyond=None).of(200_001, 1_000) is None  # never charged as less
    # A worst case counts each byte as a token, so that it may be beyond where the call is not.
    assert price.dearest.of(200_001, 1_000) == pytest.approx(200_001 * 7.5e-6 + 0.0225, abs=1e-12)


def test_costs_are_those_of_the_package() -> None:
    """Every listed model, short and long prompts, with and without cached tokens."""
    day, compared = datetime(2026, 11, 10, tzinfo=UTC), 0
    for company in providers:
        for model in company.models:
            price = list_price(company.id, model.id)
            if price is None:
                continue
            limit = price.up_to or 1_000
            for prompt, read in ((10, 0), (limit, 0), (limit, 9), (limit + 1, 0), (limit + 1, 9)):
                said = {"input_tokens": prompt, "output_tokens": 7} | (
                    {"cache_read_tokens": read} if read else {}
                )
                usd = price.of(prompt, 7, read)
                if usd is None:  # more than two steps, or a cache without a price
                    continue
                theirs = model.get_prices(day).calc_price(Usage(**said))["total_price"]
                assert usd == pytest.approx(float(theirs), rel=1e-9), (company.id, model.id, said)
                compared += prompt > limit
    assert compared > 500


def test_batch_files_have_prices_of_their_own() -> None:
    price = list_price(OPENAI, "gpt-4o-mini", batch=True)
    assert price is not None
    assert (price.input, price.output) == (0.075, 0.3)
    assert list_price("https://openrouter.ai/api/v1", "openai/gpt-4o", batch=True) is None


def test_a_version_without_a_known_day_gives_no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_prices, "DAYS", {"0.0.1": "2025-01-01"})
    assert list_price(OPENAI, "gpt-4o-mini") is None


def test_prices_are_stale_after_ninety_days() -> None:
    assert stale("2026-08-01", date(2026, 10, 30)) is None
    assert stale("2026-08-01", date(2026, 10, 31)) == 91
    assert stale(None) is None


def _recipe(folder: Path, models: list[dict[str, object]], url: str = OPENAI) -> Path:
    (folder / "q.jsonl").write_text('{"q": "1 + 1?", "a": "2"}\n')
    path = folder / "r.yaml"
    recipe = {
        "name": "r",
        "version": "1.0.0",
        "sources": [
            {
                "name": "q", "path": "q.jsonl", "scorer": "numeric", "license": "MIT",
                "fields": {"question": "q", "references": "a"},
            }
        ],
        "pool": {"providers": [{"name": "p", "base_url": url}], "models": models},
        "release": {"title": "r", "description": "r", "license": "MIT"},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(recipe))
    return path


def test_a_recipe_takes_list_prices_where_it_states_none(tmp_path: Path) -> None:
    stated = {"model_id": "b", "endpoint_model": "gpt-4o", "price_in": 9, "price_out": 9}
    path = _recipe(
        tmp_path,
        [
            {"model_id": "a", "endpoint_model": "gpt-4o-mini"},
            stated | {"price_date": "2020-01-01", "price_source": "a page"},
            {"model_id": "c"},
        ],
    )
    recipe = load(path)[0]
    a, b, c = recipe.pool.models
    assert (a.price_in, a.price_out, a.price_date) == (0.15, 0.6, "2026-11-10")
    assert (b.price_in, b.price_source) == (9, "a page")
    assert c.price_in is None
    notes = "\n".join(notes_of(recipe))
    assert "list prices for a: genai-prices 0.2.3, prices of 2026-11-10" in notes
    assert "prices of b are" in notes
    assert "read 2020-01-01, a page" in notes
    local = load(_recipe(tmp_path, [{"model_id": "gpt-4o-mini"}], "http://127.0.0.1:1/v1"))[0]
    assert local.pool.models[0].price_in is None  # a server of one's own charges what it likes


def test_a_recipe_says_what_a_long_prompt_costs(tmp_path: Path) -> None:
    stated = {"model_id": "b", "price_in": 1, "price_out": 2, "price_date": "2026-11-01"}
    long = {"tokens": 100, "price_in": 2, "price_out": 3}
    pool = load(_recipe(tmp_path, [stated | {"price_up_to": long}]))[0].pool
    rows = models_table(pool).to_pylist()
    for price in (Price.of_model(pool.models[0]), Price.of_row(rows[0])):
        assert price.of(100, 10) == pytest.approx(120e-6)
        assert price.of(101, 10) == pytest.approx(232e-6)
        assert price.of(101, 10, 1) is None  # read from a cache at a price that nobody states
        assert price.stated["price_up_to"] == long
    with pytest.raises(RecipeError, match="up to which the other prices hold"):
        load(_recipe(tmp_path, [stated | {"price_up_to": {"price_in": 2}}]))


def test_a_recipe_takes_published_sizes_with_their_source(tmp_path: Path) -> None:
    names = ["mistralai/Mixtral-8x22B-v0.1", "Mixtral-8x22B-v0.1"]
    pool = load(_recipe(tmp_path, [{"model_id": name} for name in names]))[0].pool
    assert [model.params_b for model in pool.models] == [141, None]
    known = published_size(names[0])
    assert pool.models[0].params_source == known["params_source"]
    assert known["params_source"].endswith("(read 2026-11-23)")
