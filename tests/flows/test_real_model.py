"""The real pool: SmolLM2 through llama.cpp, where both are at hand; nothing is fetched here."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.flows.demo.real import VARIANTS, binding, recipe_of_what_is_here, source
from routeyard.flows.recipe import load
from routeyard.pipelines.common.encoders import home
from routeyard.pipelines.common.errors import BadInput
from tests.flows.test_demo_server import post

ROOT = Path(__file__).parents[2]


def weights_at_hand() -> bool:
    """Whether nothing would be fetched."""
    kept = home("smollm2-gguf") / "model.gguf"
    return bool(os.environ.get("ROUTEYARD_REAL_GGUF")) or kept.is_file()


NEEDED = ("llama_cpp", "sse_starlette", "starlette_context")
HERE = all(map(importlib.util.find_spec, NEEDED)) and weights_at_hand()
real = pytest.mark.skipif(
    not HERE, reason="needs `pip install '.[real]'` and one `routeyard demo --real` before"
)


def test_without_the_binding_the_next_step_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(BadInput) as error:
        binding()
    assert ".[real]" in str(error.value.next_step)


def test_a_file_of_ones_own_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTEYARD_REAL_GGUF", "/nowhere.gguf")
    with pytest.raises(BadInput, match="no such file of weights"):
        source()


def test_without_the_data_folder_it_asks_its_own_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROUTEYARD_DATA", raising=False)
    path, left = recipe_of_what_is_here(tmp_path)
    assert {s.name for s in load(path)[0].sources} == {"bank_choice", "bank_number", "bank_text"}
    assert "gsm8k, bbh, mmlu_pro, humaneval are left out" in str(left)
    # The card's description names no data set that the release then does not hold.
    said = load(path)[0].release.description
    assert not any(name in said for name in ("GSM8K", "BIG-Bench", "MMLU", "HumanEval"))
    monkeypatch.setenv("ROUTEYARD_DATA", "somewhere")
    # Trap: under the recipe's name, the demonstration's release stood in the way of the whole.
    whole, left = recipe_of_what_is_here(tmp_path)
    assert left is None
    assert load(whole)[0].name == "real_demo"
    assert load(whole)[0].sources == load("real_tiny")[0].sources


def test_each_member_asks_a_model_that_is_served() -> None:
    recipe, _ = load("real_tiny")
    assert {model.endpoint_model for model in recipe.pool.models} <= set(VARIANTS)


@real
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_real_release_of_a_hundred_questions(tmp_path: Path) -> None:
    """About 800 answers; stops where the release is sealed, signals in it."""
    from routeyard.datacards.card import render
    from routeyard.flows.build import run_build
    from routeyard.pipelines.release.reader import open_release
    from tests.support.sound_release import verify_release

    recipe, _ = recipe_of_what_is_here(tmp_path)
    built = run_build(recipe, str(tmp_path), scale=0.3)
    folder = Path(built["release"]["path"])
    assert not verify_release(folder, render_card=render)
    with open_release(folder) as release:
        assert release.arrow("models").column("simulated").to_pylist() == [False] * 4
        answers = release.arrow("responses").to_pylist()
        signals = release.arrow("signals").to_pylist()
    assert len({row["query_id"] for row in answers}) >= 48
    assert all(row["completion_tokens"] and row["latency_s"] > 0 for row in answers)
    assert all(row["cost_usd"] > 0 for row in answers)
    assert any(row["perplexity"] and row["self_assessment"] is not None for row in signals)


@real
@pytest.mark.slow
def test_it_serves_over_http(tmp_path: Path) -> None:
    from routeyard.flows.demo.real import served_model

    request = {
        "model": "smollm2-135m-q4_1",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "temperature": 0,
        "max_tokens": 12,
        "logprobs": True,
        "top_logprobs": 2,
    }
    with served_model(tmp_path) as url:
        status, _, body = post(url + "/chat/completions", json.dumps(request).encode())
        other = post(url + "/chat/completions", json.dumps({**request, "temperature": 2}).encode())
    said = json.loads(body)
    assert (status, other[0]) == (200, 200)
    assert "Paris" in said["choices"][0]["message"]["content"]
    assert said["usage"]["completion_tokens"] >= len(said["choices"][0]["logprobs"]["content"])


@real
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_real_model_as_an_agent_that_knows_no_tools(tmp_path: Path) -> None:
    """It writes a line to search, or does not: either way each step is kept and metered."""
    from routeyard.flows.build import run_build

    text = (ROOT / "flows" / "recipes" / "agent_demo.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    content["sources"][0]["limit"] = 6
    content["pool"] = {
        "providers": [{"name": "real", "base_url": "${ROUTEYARD_REAL_URL}"}],
        "models": [
            {
                "model_id": "smollm2", "endpoint_model": "smollm2-135m-q8_0", "price_in": 0.074,
                "price_out": 0.22, "price_date": "2026-11-21", "context_window": 2048,
                "parameters": {"temperature": 0.1},
            }
        ],
    }  # fmt: skip
    content["collect"]["agent"] |= {"calls": "text", "steps": 3}
    content["collect"]["max_tokens"] = 48
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    built = run_build(str(tmp_path / "recipe.yaml"), str(tmp_path / "yard"), until="label")
    figures = built["stages"]["collect"]["figures"]
    assert figures["responses"] == 6
    assert 6 <= figures["steps"] <= 18
    (found,) = (tmp_path / "yard" / "stages" / "collect").glob("*/steps.parquet")
    for step in pq.read_table(found).to_pylist():
        assert step["latency_s"] > 0
        assert step["prompt_tokens"] > 80  # the system message that tells it how to search
        assert step["action"] in ("search", "answer", "none")
