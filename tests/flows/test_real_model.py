"""The real pool: SmolLM2 through llama.cpp, where both are at hand; nothing is fetched here."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.flows.demo.real import (
    VARIANTS,
    ChatRequest,
    RealPool,
    binding,
    recipe_of_what_is_here,
    source,
)
from routeyard.flows.demo.server import HttpReply
from routeyard.flows.recipe import load
from routeyard.pipelines.common.encoders import home
from routeyard.pipelines.common.errors import BadInput
from tests.flows.test_demo_server import post

ROOT = Path(__file__).parents[2]


def weights_at_hand() -> bool:
    """Whether nothing would be fetched."""
    kept = home("smollm2-gguf") / "model.gguf"
    return bool(os.environ.get("ROUTEYARD_REAL_GGUF")) or kept.is_file()


HERE = importlib.util.find_spec("llama_cpp") is not None and weights_at_hand()
real = pytest.mark.skipif(
    not HERE, reason="needs `pip install '.[real]'` and one `routeyard demo --real` before"
)


def refused(**request: object) -> tuple[int, str]:
    reply = RealPool(Path("unused")).complete(
        {"model": "x", "messages": [{"role": "user", "content": "hi"}], **request}
    )
    return reply.status, reply.body["error"]["message"]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({}, "does not exist"),
        ({"n": 2}, "one answer at a time"),
        ({"stream": True}, "does not stream"),
        # A parameter that is silently ignored would stand in a release as if it had worked.
        ({"top_k": 5}, "'top_k': Extra inputs are not permitted"),
        ({"top_p": 0}, "above 0 and at most 1"),
        ({"messages": []}, "list of messages"),
        ({"messages": [{"role": "user", "content": None}]}, "both texts"),
        ({"temperature": "warm"}, "number from 0"),
        ({"max_tokens": 0}, "whole numbers"),
    ],
)
def test_what_it_cannot_do_it_says(request_: dict, says: str) -> None:
    status, message = refused(**request_)
    assert status == (404 if not request_ else 400)
    assert says in message


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


def test_top_p_draws_from_the_fewest_tokens_that_have_the_share() -> None:
    from routeyard.flows.demo.real import draw

    shares = np.array([0.1, 0.5, 0.15, 0.25])
    for top_p, kept in ((0.5, {1}), (0.51, {1, 3}), (0.75, {1, 3}), (1.0, {0, 1, 2, 3})):
        random = np.random.default_rng(0)
        assert {draw(np.log(shares), None, top_p, random) for _ in range(200)} == kept
    # The share is of what the temperature makes of the logits: 0.5 becomes 0.34.
    random = np.random.default_rng(0)
    assert {draw(np.log(shares), 3.0, 0.5, random) for _ in range(200)} == {1, 3}


@real
@pytest.mark.slow
def test_an_answer_depends_on_what_is_asked_alone(tmp_path: Path) -> None:
    from routeyard.flows.demo.real import Chat, ChatMessage, ChatRequest, TooLong, variant

    name = "smollm2-135m-q4_1"
    chat = Chat(variant(name, tmp_path))

    def asked(question: str, **how: object) -> dict:
        said = [{"role": "user", "content": question}]
        request = {"model": name, "messages": said, "logprobs": True, "max_tokens": 24, **how}
        done = chat.answer(ChatRequest.model_validate(request))
        del done["usage"]["prompt_tokens_details"]
        return done

    long = "Count to ten. " * 30 + "What comes after nine?"
    other = "Count to ten. " * 30 + "What is the capital of France?"
    drawn = {"temperature": 1.0, "seed": 5, "top_logprobs": 3}
    first = asked(long, **drawn)
    # A prompt before it shares its beginning: what is kept of that must change nothing.
    said = asked(other, **drawn)
    assert asked(long, **drawn) == first
    texts = [one["choices"][0]["message"]["content"] for one in (first, said)]
    assert texts[0] != texts[1]
    assert asked(long, **{**drawn, "seed": 6})["choices"][0]["message"]["content"] != texts[0]
    for token in first["choices"][0]["logprobs"]["content"]:
        assert token["logprob"] <= token["top_logprobs"][0]["logprob"] <= 0
    greedy = asked(other, temperature=0, stop="\n")
    assert "Paris" in greedy["choices"][0]["message"]["content"]
    # What a message says is never read as markup.
    plain = chat.prompt([ChatMessage(role="user", content="<|im_end|>")])
    assert plain.count(chat.prompt([])[0]) == 2
    with pytest.raises(TooLong):
        asked(long, max_tokens=5000)


@real
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_real_release_of_a_hundred_questions(tmp_path: Path) -> None:
    """About 800 answers; stops where the release is sealed, signals in it."""
    from routeyard.datacards.card import render
    from routeyard.flows.build import run_build
    from routeyard.pipelines.release.reader import open_release
    from routeyard.pipelines.verify.database import verify_release

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


def test_requests_to_one_model_are_answered_in_the_order_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A lock between threads is not fair: one lane's requests waited until another had no more.
    done: list[str] = []

    def answer(pool: RealPool, asked: ChatRequest) -> HttpReply:
        time.sleep(0.002)
        done.append(asked.messages[0].content)
        return HttpReply(200, {})

    monkeypatch.setattr(RealPool, "_answer", answer)

    async def ask() -> None:
        pool = RealPool(tmp_path, threads=2)
        asked = [
            {"model": "smollm2-135m-q4_1", "messages": [{"role": "user", "content": str(k)}]}
            for k in range(30)
        ]
        await asyncio.gather(*(pool.complete(one) for one in asked))

    asyncio.run(ask())
    assert done == [str(k) for k in range(30)]


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
        refused = post(url + "/chat/completions", json.dumps({**request, "n": 3}).encode())
    said = json.loads(body)
    assert (status, refused[0]) == (200, 400)
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
