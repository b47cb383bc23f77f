"""List prices: of an exact provider and model, with a day, or unknown; nothing is fetched."""

from __future__ import annotations

import socket
from datetime import date
from pathlib import Path

import pytest
import yaml

from routeyard.flows.recipe import load, notes_of
from routeyard.pipelines.collect import prices as list_prices
from routeyard.pipelines.collect.budget import Price
from routeyard.pipelines.collect.prices import list_price, stale
from routeyard.pipelines.common.pool import published_size

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


def test_a_price_that_holds_for_short_prompts_says_nothing_of_long_ones() -> None:
    price = list_price("https://api.anthropic.com/v1", "claude-sonnet-4-5")
    assert price is not None
    assert (price.input, price.output, price.up_to) == (3.0, 15.0, 200_000)
    assert price.of(200_000, 1_000) == pytest.approx(0.615, abs=1e-12)
    assert price.of(200_001, 1_000) is None  # twice as dear, and never charged as less


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


def test_a_recipe_takes_published_sizes_with_their_source(tmp_path: Path) -> None:
    names = ["mistralai/Mixtral-8x22B-v0.1", "Mixtral-8x22B-v0.1"]
    pool = load(_recipe(tmp_path, [{"model_id": name} for name in names]))[0].pool
    assert [model.params_b for model in pool.models] == [141, None]
    known = published_size(names[0])
    assert known is not None
    assert pool.models[0].params_source == known.words
    assert known.words.endswith("(read 2026-11-23)")
