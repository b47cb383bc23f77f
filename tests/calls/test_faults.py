"""A run through everything a server can do wrong.

Every wanted pair ends as a row, nothing is invented, no permanent error is asked
twice, and no success is asked twice.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.reply import CallFault
from routeyard.pipelines.collect.runner import backoff
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Retry
from routeyard.schemas.recipe.pool import Model
from tests.calls.asking import Asked, ask, pool_of
from tests.calls.loopback import Do, Loopback, answer, completion, error

QUICK = Retry(attempts=3, first_wait_s=0.01)
BIG = "x" * 1_000_000
ODD = "zero\u0000 nul, combining e\u0301, 👩‍👩‍👧‍👦, \u202eright to left, \ufeffbom"

#: prompt → (what the server does at the n-th time, status the row must have)
Fault = tuple[Callable[[int], Do], str]
once = lambda do: lambda seen: do if seen == 0 else answer(completion())  # noqa: E731
always = lambda do: lambda seen: do  # noqa: E731
TRANSIENT: dict[str, Fault] = {
    "429 without Retry-After": (once(error(429)), "ok"),
    "429 with Retry-After": (once(error(429, headers={"retry-after": "0.3"})), "ok"),
    "429 with a date": (
        once(error(429, headers={"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})),
        "ok",
    ),
    "500": (once(error(500)), "ok"),
    "502 with HTML": (once(Do(status=502, body=b"<html>bad gateway</html>")), "ok"),
    "503": (once(error(503)), "ok"),
    "408": (once(error(408)), "ok"),
    "409": (once(error(409)), "ok"),
    "425": (once(error(425)), "ok"),
    "reset mid-body": (once(answer(completion("42" * 5000), cut=2000)), "ok"),
    "reset before a byte": (once(Do(cut=0, body=b"x")), "ok"),
    "hang": (once(Do(hang=True)), "ok"),
    "empty body": (once(Do()), "ok"),
    "invalid JSON": (once(Do(body=b'{"choices": [{"message": ')), "ok"),
    "deep JSON": (once(Do(body=b"[" * 100_000)), "ok"),
    "JSON list": (once(Do(body=b"[]")), "ok"),
    "error with 200": (once(answer({"error": {"code": 502, "message": "upstream"}})), "ok"),
    "no choices": (once(answer(completion(choices=[]))), "ok"),
    "choice is no object": (once(answer(completion(choices=["x"]))), "ok"),
    # An empty text would be an answer, and a wrong one.
    "parts without a text": (once(answer(completion([{"type": "image_url"}]))), "ok"),
    "null text": (once(answer(completion(None))), "ok"),
    "not UTF-8": (once(Do(body=b'{"choices": "\xff\xfe"}')), "ok"),
}
LASTING: dict[str, Fault] = {
    "400": (always(error(400)), "error"),
    "403": (always(error(403)), "error"),
    "422": (always(error(422)), "error"),
    "always 500": (always(error(500)), "error"),
    "always invalid": (always(Do(body=b"nonsense")), "error"),
}
ANSWERED: dict[str, Fault] = {
    "missing usage": (always(answer(completion(usage=None))), "ok"),
    "odd usage": (
        always(answer(completion(usage={"prompt_tokens": -1, "completion_tokens": "many"}))),
        "ok",
    ),
    "wrong model": (always(answer(completion(model="cheaper-model"))), "ok"),
    "length": (always(answer(completion("half an ans", finish="length"))), "truncated"),
    "length without text": (always(answer(completion(None, finish="length"))), "truncated"),
    "content filter": (always(answer(completion(None, finish="content_filter"))), "refused"),
    "duplicate choices": (
        always(
            answer(
                completion(
                    choices=[
                        {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
                        for text in ("first", "second")
                    ]
                )
            )
        ),
        "ok",
    ),
    "unicode": (always(answer(completion(ODD))), "ok"),
    # No file can hold half a surrogate pair.
    "lone surrogate": (
        always(Do(body=json.dumps(completion("SURR")).replace("SURR", "a\\ud800b").encode())),
        "ok",
    ),
    "1 MB": (always(answer(completion(BIG))), "ok"),
    "empty text": (always(answer(completion(""))), "empty"),
    "fine": (always(answer(completion())), "ok"),
}
FAULTS = TRANSIENT | LASTING | ANSWERED


def run(server: Loopback, folder: Path, prompts: list[str], **settings: Any) -> Asked:
    settings = {"retry": QUICK, "deadline_s": 1.0} | settings
    with SqliteLedger(folder / "ledger.sqlite") as ledger:
        return ask(ledger, pool_of(server), prompts, **settings)


def test_every_fault_ends_as_a_row(tmp_path: Path) -> None:
    def behave(body: dict[str, Any], seen: int) -> Do:
        return FAULTS[body["messages"][0]["content"]][0](seen)

    with Loopback(behave) as server:
        first = run(server, tmp_path, list(FAULTS))
        rows = {row["query_id"]: row for row in first.rows}
        assert {name: row["status"] for name, row in rows.items()} == {
            name: status for name, (_, status) in FAULTS.items()
        }
        asked = Counter({prompt: n for (_, prompt, _), n in server.seen.items()})
        assert {name: asked[name] for name in TRANSIENT} == dict.fromkeys(TRANSIENT, 2)
        assert {name: asked[name] for name in ANSWERED} == dict.fromkeys(ANSWERED, 1)
        assert [asked[f"{code}"] for code in (400, 403, 422)] == [1, 1, 1]
        assert asked["always 500"] == asked["always invalid"] == QUICK.attempts
        # Nothing is invented.
        assert {rows[name]["text"] for name in LASTING} == {None}
        assert rows["missing usage"]["prompt_tokens"] is None
        assert rows["odd usage"]["prompt_tokens"] is None
        assert rows["odd usage"]["completion_tokens"] is None
        assert rows["wrong model"]["served_model"] == "cheaper-model"
        assert rows["length without text"]["text"] is None
        assert rows["duplicate choices"]["text"] == "first"
        assert rows["unicode"]["text"] == ODD
        assert rows["lone surrogate"]["text"] == "a\ufffdb"
        assert rows["1 MB"]["text"] == BIG
        assert rows["empty text"]["text"] == ""
        assert "HTTP" in rows["400"]["error"] or "http_400" in rows["400"]["error"]
        assert rows["500"]["attempts"] == 2
        # A refused question is an outcome; missing is what may still come, also once somebody
        # has mended a key (403).
        assert first.ended.missing == {"m": 3}

        # A second run asks only what may still succeed.
        before = server.requests
        run(server, tmp_path, list(FAULTS))
        again = Counter({prompt: n for (_, prompt, _), n in server.seen.items()}) - asked
        assert set(again) == {"403", "always 500", "always invalid"}
        assert server.requests - before == 2 * QUICK.attempts + 1


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_refused_key_or_model_costs_one_call(tmp_path: Path, status: int) -> None:
    with Loopback(lambda body, seen: error(status, "no such thing")) as server:
        found = run(server, tmp_path, [f"q{i}" for i in range(200)])
    assert server.requests == 1
    assert "refuses model or key" in found.ended.paused["m"]
    (error_said,) = found.column("error")
    assert f"http_{status}" in error_said  # the others were never asked: absent, not wrong


def test_an_empty_account_is_not_retried(tmp_path: Path) -> None:
    # OpenAI answers 429 for it, which waiting does not mend.
    body = {"error": {"code": "insufficient_quota", "message": "pay first"}}
    do = Do(status=429, body=json.dumps(body).encode())
    with Loopback(lambda body, seen: do) as server:
        ended = run(server, tmp_path, ["a", "b"]).ended
    assert server.requests == 1
    assert "insufficient_quota" in ended.paused["m"]


def test_a_failing_model_is_paused_and_the_other_goes_on(tmp_path: Path) -> None:
    def behave(body: dict[str, Any], seen: int) -> Do:
        return error(503) if body["model"] == "bad" else answer(completion())

    retry = Retry(attempts=2, first_wait_s=0.01, pause_after=5)
    prompts = [f"q{i}" for i in range(300)]
    with Loopback(behave) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        pool = pool_of(server, Model(model_id="bad"), Model(model_id="good"))
        collected = ask(ledger, pool, prompts, retry=retry).ended
        bad = sum(n for (model, _, _), n in server.seen.items() if model == "bad")
    assert "5 pairs in a row failed" in collected.paused["bad"]
    assert collected.missing == {"bad": 300}
    assert collected.figures["models"]["good"]["ok"] == 300
    assert bad < 100


def test_throttling_halves_what_is_in_flight(tmp_path: Path) -> None:
    # More than 8 at once gets 429: the run must settle there and lose nothing.
    holder: list[Loopback] = []

    def behave(body: dict[str, Any], seen: int) -> Do:
        if holder[0].in_flight > 8:
            return error(429)
        return answer(completion(), delay=0.005)

    with Loopback(behave) as server:
        holder.append(server)
        retry = Retry(attempts=50, first_wait_s=0.01)
        found = run(server, tmp_path, [f"q{i}" for i in range(400)], retry=retry)
    assert found.ended.complete
    assert set(found.column("status")) == {"ok"}
    refused = found.ended.figures["models"]["m"]["errors"]["http_429"]
    assert refused < 200, "the window did not shrink"


def test_a_call_that_fails_alone_is_repeated_soon(tmp_path: Path) -> None:
    def behave(body: dict[str, Any], seen: int) -> Do:
        if body["messages"][0]["content"] == "q9" and not seen:
            return error(500, delay=0.1)
        return answer(completion(), delay=0.005)

    with Loopback(behave) as server:
        began = time.monotonic()
        retry = Retry(first_wait_s=20.0)
        collected = run(server, tmp_path, [f"q{i}" for i in range(400)], retry=retry).ended
        took = time.monotonic() - began
    assert collected.complete
    assert server.requests == 401
    assert took < 8  # where nothing else was answered it would wait for 10 to 20 seconds


FAILED = CallFault("http_500", "no", status=500)


@pytest.mark.parametrize(
    ("fault", "alone", "waits"),
    [
        (FAILED, False, 2.0),
        (FAILED, True, 0.2),
        (CallFault("http_503", "busy", status=503), True, 2.0),
        (CallFault("http_529", "busy", status=529), True, 2.0),
        (CallFault("http_429", "slow down", status=429, throttled=True), True, 2.0),
    ],
)
def test_waits_are_short_only_where_others_are_answered(
    fault: CallFault, alone: bool, waits: float
) -> None:
    retry = Retry(first_wait_s=1.0)
    assert backoff(retry, fault, 2, 1.0, alone=alone) == pytest.approx(waits)
    assert backoff(retry, fault, 2, 0.0, alone=alone) == pytest.approx(waits / 2)
    # Who failed often may have met more than chance.
    assert backoff(retry, fault, 3, 1.0, alone=alone) == pytest.approx(4.0)


def test_retry_after_is_obeyed(tmp_path: Path) -> None:
    times: list[float] = []

    def behave(body: dict[str, Any], seen: int) -> Do:
        times.append(time.monotonic())
        return error(429, headers={"retry-after": "1"}) if len(times) == 1 else answer(completion())

    with Loopback(behave) as server:
        assert run(server, tmp_path, [f"q{i}" for i in range(5)]).ended.complete
    assert times[1] - times[0] >= 1.0
    with Loopback(lambda body, seen: error(429, headers={"retry-after": "86400"})) as server:
        ended = run(server, tmp_path / "b", ["q"]).ended
    assert "asked to wait 86400 s" in ended.paused["m"]  # not held for a day


def test_truncated_answers_are_asked_again_with_a_larger_limit(tmp_path: Path) -> None:
    def behave(body: dict[str, Any], seen: int) -> Do:
        long = body["max_tokens"] >= 500
        return answer(completion("whole" if long else "ha", finish="stop" if long else "length"))

    with Loopback(behave) as server:
        found = run(server, tmp_path, ["a", "b"], max_tokens=100)
        assert found.column("status") == ["truncated"] * 2
        found = run(server, tmp_path, ["a", "b"], max_tokens=100, reask_truncated=500)
        assert found.column("text") == ["whole", "whole"]
        assert found.column("attempts") == [2, 2]
        assert server.requests == 4
        # In one run as well, and then never again.
        found = run(server, tmp_path / "b", ["a", "b"], max_tokens=100, reask_truncated=500)
        assert found.column("text") == ["whole", "whole"]
        assert server.requests == 8


def test_samples_in_one_request_or_several(tmp_path: Path) -> None:
    def behave(body: dict[str, Any], seen: int) -> Do:
        n = body.get("n", 1)
        choices = [
            {
                "index": i,
                "message": {"content": f"{body['seed']}+{i}"},
                "finish_reason": "stop",
                "logprobs": {
                    "content": [
                        {
                            "token": "4",
                            "logprob": -0.1,
                            "top_logprobs": [{"token": "5", "logprob": -2.5}],
                        }
                    ]
                },
            }
            for i in range(n)
        ]
        usage = {"prompt_tokens": 10, "completion_tokens": 5 * n, "total_tokens": 10 + 5 * n}
        return answer(completion(choices=choices, usage=usage, extra={"usage_": 1}))

    settings = {"samples": 3, "temperature": 0.8, "seed": 7, "logprobs": True, "top_logprobs": 1}
    with Loopback(behave) as server:
        found = run(server, tmp_path / "a", ["q"], **settings)
        assert found.column("text") == ["7+0", "8+0", "9+0"]
        assert json.loads(found.column("logprobs")[0]) == [
            {"token": "4", "logprob": -0.1, "top": [["5", -2.5]]}
        ]
        with SqliteLedger(tmp_path / "b.sqlite") as ledger:
            found = ask(ledger, pool_of(server, supports_n=True), **settings)
        assert found.plan.calls == 1
        assert found.column("text") == ["7+0", "7+1", "7+2"]
        assert found.column("completion_tokens") == [None] * 3  # not told apart
        assert server.requests == 4


def test_a_server_that_ignores_n_is_asked_for_the_rest(tmp_path: Path) -> None:
    with (
        Loopback(lambda body, seen: answer(completion(str(body["seed"])))) as server,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        found = ask(ledger, pool_of(server, supports_n=True), ["a", "b"], samples=4)
        assert found.ended.complete
        assert found.column("text") == ["0", "1", "2", "3"] * 2
        assert server.requests == 8


def test_streaming_gives_the_time_to_first_token(tmp_path: Path) -> None:
    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        data = {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        return b"data: " + json.dumps(data).encode() + b"\n\n"

    usage = {
        "model": "m",
        "choices": [],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }
    whole = (
        event({"role": "assistant", "content": ""})
        + event({"content": "Forty"})
        + event({"content": "-two ü"}, "stop")
        + b"data: "
        + json.dumps(usage).encode()
        + b"\n\ndata: [DONE]\n\n"
    )
    headers = {"content-type": "text/event-stream"}

    def behave(body: dict[str, Any], seen: int) -> Do:
        assert body["stream"] is True
        if body["messages"][0]["content"] == "broken" and seen == 0:
            # Half a stream that ends cleanly must not stand as an answer.
            return Do(body=whole[:150], headers=headers)
        return Do(body=whole, headers=headers)

    with Loopback(behave) as server:
        found = run(server, tmp_path, ["fine", "broken"], stream=True)
        asked = server.requests
        again = run(server, tmp_path, ["fine", "broken"], stream=False)
    assert server.requests == asked  # streaming does not change what is asked
    assert len(again.rows) == 2
    assert found.column("text") == ["Forty-two ü"] * 2
    assert found.column("completion_tokens") == [2, 2]
    assert all(0 < t < 1 for t in found.column("ttft_s"))
    assert sorted(found.column("attempts")) == [1, 2]
