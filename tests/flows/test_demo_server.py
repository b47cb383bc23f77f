"""The demo server: the real client against the real process."""

from __future__ import annotations

import asyncio
import json
import socket
import urllib.request

import pytest

from routeyard.flows.demo.answers import bank, pool
from routeyard.flows.demo.server import running

MODEL = "sim-borealis-large"


@pytest.fixture(scope="module")
def url():
    with running(latency=0) as base_url:
        yield base_url


def ask(url, **request):
    """(status, headers, body) of one completion over the wire."""
    request = {"model": MODEL, **request}
    if "content" in request:
        request["messages"] = [{"role": "user", "content": request.pop("content")}]
    return post(url + "/chat/completions", json.dumps(request).encode())


def post(address, body):
    asked = urllib.request.Request(address, body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(asked) as got:
            return got.status, got.headers, got.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def get(address):
    with urllib.request.urlopen(address) as got:
        return json.load(got)


def patiently(url, **request):
    """The body of a completion, asked until the planted faults have gone."""
    for _ in range(4):
        status, _, body = ask(url, **request)
        if status == 200:
            return json.loads(body)
    raise AssertionError(body)


def test_the_openai_client_talks_to_it(url):
    import openai

    async def talk():
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=4) as client:
            asked = [
                client.chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": q.question}], seed=0
                )
                for q in bank()[:60]
            ]
            whole = await asyncio.gather(*asked)
            with pytest.raises(openai.BadRequestError, match="does not stream"):
                await client.chat.completions.create(
                    model=MODEL,
                    messages=[{"role": "user", "content": bank()[0].question}],
                    stream=True,
                )
            return whole

    whole = asyncio.run(talk())
    for completion in whole:
        assert completion.model == MODEL
        assert completion.system_fingerprint
        usage = completion.usage
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
        assert usage.cost > 0


def test_the_same_seed_gives_the_same_answers_in_another_process(url):
    def answers(base):
        return [patiently(base, content=q.question, seed=3)["choices"][0] for q in bank()[:80]]

    first = answers(url)
    with running(latency=0) as again, running(latency=0, seed=1) as other:
        assert answers(again) == first
        assert answers(other) != first


def test_n_samples_are_those_of_the_following_seeds(url):
    q = next(q for q in bank() if q.task == "logic")
    together = patiently(url, content=q.question, n=4, seed=10)["choices"]
    alone = [patiently(url, content=q.question, seed=10 + i)["choices"][0] for i in range(4)]
    assert [c["message"] for c in together] == [c["message"] for c in alone]


def test_a_small_limit_cuts_the_answer(url):
    q = bank()[0]
    body = patiently(url, content=q.question, max_tokens=3)
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 3


def test_logprobs_are_those_of_the_tokens_sent(url):
    q = next(q for q in bank() if q.task == "arithmetic")
    choice = patiently(url, content=q.question, logprobs=True, top_logprobs=3)["choices"][0]
    content = choice["logprobs"]["content"]
    assert "".join(entry["token"] for entry in content) == choice["message"]["content"]
    assert all(entry["logprob"] <= 0 and len(entry["top_logprobs"]) == 3 for entry in content)


def test_faults_come_now_and_then_and_go_away():
    seen = []
    with running(latency=0, faults=20) as base:
        for q in bank()[:100]:
            for _ in range(4):
                status, headers, _ = ask(base, content=q.question)
                seen.append(status)
                if status == 429:
                    assert float(headers["retry-after"]) < 1
                if status == 200:
                    break
            assert status == 200
        counts = get(base.removesuffix("/v1") + "/counts")
    assert seen.count(429) >= 3
    assert seen.count(500) >= 3
    assert counts["requests"] == len(seen)
    assert counts["answers"] == 100


def test_it_counts_what_was_asked_and_answered(url):
    before = get(url.removesuffix("/v1") + "/counts")["answered"].get("sim-tern-mini", {})
    q = bank()[5]
    patiently(url, model="sim-tern-mini", content=q.question, seed=9)
    patiently(url, model="sim-tern-mini", content=q.question, seed=9)
    after = get(url.removesuffix("/v1") + "/counts")["answered"]["sim-tern-mini"]
    assert set(after) - set(before) == {f"{q.id}#9"}
    assert after[f"{q.id}#9"] == 2


def test_prices_stand_in_the_list_as_the_recipe_says(url):
    listed = {row["id"]: row for row in get(url + "/models")["data"]}
    assert set(listed) == set(pool())
    for model in pool().values():
        pricing = listed[model.model_id]["pricing"]
        assert float(pricing["prompt"]) * 1e6 == pytest.approx(model.price_in)
        assert float(pricing["completion"]) * 1e6 == pytest.approx(model.price_out)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"model": "gpt-unknown", "content": "hi"}, 404),
        ({"messages": []}, 400),
        ({"messages": "hi"}, 400),
        ({"content": "hi", "n": 0}, 400),
        ({"content": "hi", "max_tokens": "many"}, 400),
    ],
)
def test_bad_requests_are_refused_as_openai_does(url, request_, status):
    got, _, body = ask(url, **request_)
    assert got == status
    assert json.loads(body)["error"]["message"]


def test_bad_json_and_bad_http_do_not_stop_the_server(url):
    assert post(url + "/chat/completions", b"{")[0] == 400
    assert post(url + "/chat/completions", b"[" * 100_000)[0] == 400
    host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
    with socket.create_connection((host, int(port))) as wire:
        wire.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: many\r\n\r\n")
        assert b" 400 " in wire.recv(1000)
    assert get(url.removesuffix("/v1") + "/health") == {"status": "ok"}


def test_requests_in_one_packet_are_answered_in_order(url):
    host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
    with socket.create_connection((host, int(port))) as wire:
        wire.settimeout(10)
        to = b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        wire.sendall(b"GET /health" + to + b"GET /nothing" + to)
        got = b""
        while b"no route" not in got and (more := wire.recv(4000)):
            got += more
    assert got.index(b"200 OK") < got.index(b"404 Not Found")
