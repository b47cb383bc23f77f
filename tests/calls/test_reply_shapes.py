"""One table of replies as servers send them, each as a body, as a stream and as a line of a batch.

Written by hand after what vendors document and users report. Tokens and costs are exact, nothing
is asked twice, and no name is empty, whatever way a reply comes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.audit.metering import audit
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.pool import models_table
from routeyard.schemas import RESPONSES
from routeyard.schemas.recipe.pool import Model, Pool
from tests.calls.asking import ask, pool_of
from tests.calls.loopback import Do, Loopback, answer
from tests.calls.test_batch import Batches

#: USD per million tokens, so that hand-computed costs are in millionths of a USD.
PRICES = {
    "price_in": 1.0,
    "price_out": 2.0,
    "price_cache_read": 0.1,
    "price_cache_write": 1.25,
    "price_date": "2026-01-01",
}
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
UNKNOWN = (None, None, None, None, None)
TEXT = "The answer is 42."


def counts(
    prompt: int | None = 10,
    completion: int | None = 5,
    read: int | None = None,
    write: int | None = None,
    reasoning: int | None = None,
) -> tuple[int | None, ...]:
    return prompt, completion, read, write, reasoning


@dataclass(frozen=True)
class Shape:
    """A reply and what it holds.

    Attributes:
        usage: Records of usage: a body has the last, a stream all, each in an event.
        top, choice, message: What differs from a plain reply, in the place of that name.
        deltas: What a stream sends for the message; a list of parts of its text by default.
        tail: Events after all others; `None` is a line without data.
        ways: The ways in which such a reply comes.
        tokens: Prompt, completion, read and written of the cache, reasoning.
        usd: Millionths of a USD.
    """

    usage: tuple[Any, ...] = (USAGE,)
    top: dict[str, Any] = field(default_factory=dict)
    choice: dict[str, Any] = field(default_factory=dict)
    message: dict[str, Any] = field(default_factory=dict)
    deltas: tuple[Any, ...] | None = None
    tail: tuple[Any, ...] = ()
    ways: str = "body stream batch"
    tokens: tuple[int | None, ...] = counts()
    usd: float | None = 20.0
    text: str | None = TEXT
    status: str = "ok"
    finish: str | None = "stop"
    served: str | None = "m"

    def body(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": TEXT} | self.message
        choice = {"index": 0, "message": message, "finish_reason": "stop"} | self.choice
        usage = {"usage": self.usage[-1]} if self.usage else {}
        return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice],
                **usage, **self.top}  # fmt: skip

    def events(self) -> list[Any]:
        head = {"id": "c", "object": "chat.completion.chunk", "model": "m"} | self.top
        given = ({"content": TEXT[:7]}, {"content": TEXT[7:]})
        deltas = self.deltas or (({"content": TEXT} | self.message,) if self.message else given)
        index = self.choice.get("index", 0)
        chunks = [
            {**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]}
            for delta in ({"role": "assistant", "content": ""}, *deltas)
        ]
        last = {"index": 0, "delta": {}, "finish_reason": "stop"} | self.choice
        usage = [{**head, "choices": [], "usage": record} for record in self.usage]
        return [*chunks, {**head, "choices": [last]}, *usage, *self.tail]


def streamed(events: list[Any]) -> bytes:
    lines = ["data:" if event is None else f"data: {json.dumps(event)}" for event in events]
    return "\n\n".join([*lines, "data: [DONE]", ""]).encode()


def openai(**changes: Any) -> dict[str, Any]:
    """Usage with all the details that OpenAI sends."""
    return {
        **USAGE,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
        **changes,
    }


ZERO = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
SHAPES: dict[str, Shape] = {
    # Vendors.
    "openai": Shape((openai(),), {"system_fingerprint": "fp"}, tokens=counts(10, 5, 0, None, 0)),
    "openai, cached and reasoning": Shape(
        (openai(prompt_tokens=2006, completion_tokens=300, total_tokens=2306,
                prompt_tokens_details={"cached_tokens": 1920},
                completion_tokens_details={"reasoning_tokens": 256}),),
        tokens=counts(2006, 300, 1920, None, 256), usd=86 + 192 + 600,
    ),
    "openai, usage null until the end": Shape((None, openai()), tokens=counts(10, 5, 0, None, 0)),
    "azure, filters beside": Shape(
        (openai(),),
        {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]},
        {"content_filter_results": {"hate": {"filtered": False, "severity": "safe"}}},
        tokens=counts(10, 5, 0, None, 0),
    ),
    "azure, a first event without a model": Shape(
        tail=({"choices": [], "created": 0, "id": "", "model": "", "object": ""},),
    ),
    "azure, an empty error": Shape(top={"error": {"code": None, "message": "", "details": []}}),
    "openrouter": Shape(
        ({**USAGE, "cost": 0.000021, "cost_details": {"upstream_inference_cost": None},
          "prompt_tokens_details": {"cached_tokens": 0}, "is_byok": False},),
        {"provider": "DeepInfra"}, {"native_finish_reason": "stop", "logprobs": None},
        {"refusal": None, "reasoning": None}, tokens=counts(10, 5, 0), usd=21,
    ),
    "openrouter, a key of one's own": Shape(
        ({**USAGE, "cost": 0, "is_byok": True,
          "cost_details": {"upstream_inference_cost": 0.00002}},),
    ),
    "openrouter, a cost as a text": Shape(({**USAGE, "cost": "0.000021"},), usd=21),
    "anthropic through a gateway": Shape(
        ({"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 90,
          "cache_creation_input_tokens": 0},),
        tokens=counts(100, 5, 90, 0), usd=10 + 9 + 10,
    ),
    "anthropic, the answer's tokens in a second event": Shape(
        ({"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1},
         {"output_tokens": 5}),
        ways="stream", tokens=counts(100, 5, 90), usd=10 + 9 + 10,
    ),
    "anthropic, written to the cache": Shape(
        ({"prompt_tokens": 110, "completion_tokens": 5, "total_tokens": 115,
          "cache_creation_input_tokens": 100, "cache_read_input_tokens": 0},),
        tokens=counts(110, 5, 0, 100), usd=10 + 125 + 10,
    ),
    "anthropic, a total without the cache": Shape(
        ({"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 90,
          "total_tokens": 15},),
        tokens=counts(100, 5, 90), usd=10 + 9 + 10,
    ),
    "gemini, own names": Shape(
        (), {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 3,
                               "thoughtsTokenCount": 2, "totalTokenCount": 15}},
        tokens=counts(10, 5, None, None, 2),
    ),
    "gemini, thoughts in the total alone": Shape(
        ({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 125},),
        tokens=counts(20, None), usd=None,
    ),
    "vllm": Shape(
        ({**USAGE, "prompt_tokens_details": None},),
        {"prompt_logprobs": None, "kv_transfer_params": None},
        {"stop_reason": None, "token_ids": None}, {"reasoning_content": None, "tool_calls": []},
    ),
    "vllm, usage in every event": Shape(
        tuple({"prompt_tokens": 10, "completion_tokens": n, "total_tokens": 10 + n}
              for n in range(6)),
    ),
    "llama.cpp": Shape(
        top={"timings": {"cache_n": 8, "prompt_n": 2, "predicted_n": 5}}, tokens=counts(10, 5, 8),
        usd=2 + 0.8 + 10,
    ),
    "llama.cpp, timings alone": Shape(
        (), {"timings": {"cache_n": 0, "prompt_n": 10, "predicted_n": 5}}, tokens=counts(10, 5, 0),
    ),
    "ollama": Shape(top={"system_fingerprint": "fp_ollama", "eval_count": 9}),
    "litellm, of anthropic": Shape(
        ({"prompt_tokens": 2010, "completion_tokens": 30, "total_tokens": 2040,
          "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 0,
          "prompt_tokens_details": {"cached_tokens": 2000, "text_tokens": None},
          "completion_tokens_details": None},),
        tokens=counts(2010, 30, 2000, 0), usd=10 + 200 + 60,
    ),
    "mistral, thoughts as parts": Shape(
        message={"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "6 times 7"}]},
            {"type": "text", "text": TEXT},
        ]},
        deltas=(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "6 ti"}]}]},
            {"content": [{"type": "text", "text": TEXT[:3]}]}, {"content": TEXT[3:]},
        ),
    ),
    "deepseek": Shape(
        ({**USAGE, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 2,
          "completion_tokens_details": {"reasoning_tokens": 3}},),
        message={"content": TEXT, "reasoning_content": "6 times 7"},
        tokens=counts(10, 5, 8, None, 3), usd=2 + 0.8 + 10,
    ),
    "xai, hidden tokens beside": Shape(
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 289,
          "completion_tokens_details": {"reasoning_tokens": 248}, "num_sources_used": 0},),
        tokens=counts(32, 257, None, None, 248), usd=32 + 514,
    ),
    "together": Shape(({**USAGE, "cached_tokens": 0},), choice={"seed": 1, "text": TEXT},
                      tokens=counts(10, 5, 0)),
    "groq": Shape(
        (), {"x_groq": {"id": "r", "usage": {**USAGE, "queue_time": 0.1}}},
    ),
    "moonshot, usage in the choice": Shape((), choice={"usage": {**USAGE, "cached_tokens": 6}},
                                           tokens=counts(10, 5, 6), usd=4 + 0.6 + 10),
    "perplexity, the message beside each delta": Shape(
        ({**USAGE, "cost": {"input_tokens_cost": 0.0001, "total_cost": 0.0002}},),
        choice={"delta": {"content": ""}}, usd=200,
    ),
    "qwen": Shape(
        ({"prompt_tokens": 3019, "completion_tokens": 104, "total_tokens": 3123,
          "prompt_tokens_details": {"cached_tokens": 2048, "cache_creation_input_tokens": 500}},),
        tokens=counts(3019, 104, 2048, 500), usd=471 + 204.8 + 625 + 208,
    ),
    "bedrock": Shape(
        ({"inputTokens": 15, "outputTokens": 5, "totalTokens": 4099, "cacheReadInputTokens": 0,
          "cacheWriteInputTokens": 4079},),
        tokens=counts(4094, 5, 0, 4079), usd=15 + 5098.75 + 10,
    ),
    "camel case": Shape(
        ({"promptTokens": 10, "completionTokens": 5, "totalTokens": 15},), tokens=counts(),
    ),
    # What comes after the usage takes nothing away.
    "a last event with empty names": Shape(
        tail=({"id": "", "model": "", "choices": []}, {"choices": [], "cost": "0"}),
    ),
    "a part of the usage afterwards": Shape(
        (USAGE, {"prompt_tokens_details": {"cached_tokens": 0}}), ways="stream",
        tokens=counts(10, 5, 0),
    ),
    "zeros afterwards": Shape((USAGE, ZERO), ways="stream"),
    "nulls afterwards": Shape((USAGE, dict.fromkeys(USAGE)), ways="stream"),
    "empty texts afterwards": Shape((USAGE, dict.fromkeys(USAGE, "")), ways="stream"),
    "empty usage afterwards": Shape((USAGE, {}, "", [], None), ways="stream"),
    "details in the one, counts in the other": Shape(
        ({"completion_tokens_details": {"reasoning_tokens": 2}}, USAGE), ways="stream",
        tokens=counts(reasoning=2),
    ),
    "details that lose their counts": Shape(
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 8}},
         {"prompt_tokens_details": None}, {"prompt_tokens_details": {"cached_tokens": 0}}),
        ways="stream", tokens=counts(10, 5, 8), usd=2 + 0.8 + 10,
    ),
    "a cost of nothing afterwards": Shape(
        ({**USAGE, "cost": 0.000021}, {"cost": 0}), ways="stream", usd=21
    ),
    "the same usage twice": Shape((USAGE, USAGE), ways="stream"),
    # Increments, as the total says.
    "increments of the answer": Shape(
        ({"prompt_tokens": 10, "completion_tokens": 2}, {"completion_tokens": 2},
         {"completion_tokens": 1, "total_tokens": 15}),
        ways="stream",
    ),
    "increments beside a prompt that is repeated": Shape(
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
         {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 15}),
        ways="stream",
    ),
    "increments of prompt and answer": Shape(
        ({"prompt_tokens": 6, "completion_tokens": 2}, {"prompt_tokens": 4},
         {"completion_tokens": 3, "total_tokens": 15}),
        ways="stream",
    ),
    "neither increments nor counts": Shape(
        ({"prompt_tokens": 10, "completion_tokens": 2}, {"completion_tokens": 2},
         {"total_tokens": 11}),
        ways="stream", tokens=UNKNOWN, usd=None,
    ),
    # Counts.
    "counts as texts": Shape(({name: str(count) for name, count in USAGE.items()},)),
    "counts as fractions of one": Shape(({name: float(count) for name, count in USAGE.items()},)),
    "details as texts": Shape(
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": "8"}},), tokens=counts(10, 5, 8),
        usd=2 + 0.8 + 10,
    ),
    "no usage": Shape((), tokens=UNKNOWN, usd=None),
    "empty usage": Shape(({},), tokens=UNKNOWN, usd=None),
    "usage as a text": Shape(("much",), tokens=UNKNOWN, usd=None),
    "zeros beside a text": Shape((ZERO,), tokens=UNKNOWN, usd=None),
    "a prompt of zero tokens": Shape(
        ({"prompt_tokens": 0, "completion_tokens": 5, "total_tokens": 5},), tokens=counts(None),
        usd=None,
    ),
    "an answer of zero tokens": Shape(
        ({"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10},),
        tokens=counts(10, None), usd=None,
    ),
    "an answer of zero tokens, hidden ones beside": Shape(
        ({"prompt_tokens": 10, "completion_tokens": 0,
          "completion_tokens_details": {"reasoning_tokens": 5}},),
        tokens=counts(10, None, reasoning=5), usd=None,
    ),
    "a cost of nothing without tokens": Shape(({"cost": 0},), tokens=UNKNOWN, usd=None),
    "a cost of nothing as a text": Shape(({**USAGE, "cost": "0"},)),
    "an empty cost": Shape(({**USAGE, "cost": ""},)),
    "a negative cost": Shape(({**USAGE, "cost": -1},)),
    "a total below its parts": Shape(
        ({**USAGE, "total_tokens": 4},), tokens=UNKNOWN, usd=None
    ),
    "a total of zero": Shape(({**USAGE, "total_tokens": 0},)),
    "more cached than there was": Shape(
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 64}},), tokens=UNKNOWN, usd=None
    ),
    "more hidden than there was": Shape(
        ({"prompt_tokens": 10, "completion_tokens": 5,
          "completion_tokens_details": {"reasoning_tokens": 64}},), tokens=UNKNOWN, usd=None,
    ),
    # Names, reasons and errors that say nothing.
    "no model": Shape(top={"model": None}, served=None),
    "an empty model": Shape(top={"model": ""}, served=None),
    "a blank model": Shape(top={"model": "  ", "provider": "", "system_fingerprint": ""},
                           served=None),
    "a model that is an object": Shape(top={"model": {}, "provider": []}, served=None),
    "an error that is null": Shape(top={"error": None}),
    "an error that is an empty text": Shape(top={"error": ""}, choice={"error": ""}),
    "an error that is an empty object": Shape(top={"error": {}}, choice={"error": {}}),
    "an error with code 0": Shape(top={"error": {"code": 0, "message": ""}}),
    "no reason to finish": Shape(choice={"finish_reason": None}, finish=None),
    "an empty reason to finish": Shape(choice={"finish_reason": ""}, finish=None),
    "an empty refusal": Shape(message={"content": TEXT, "refusal": ""}),
    "an index as a text": Shape(choice={"index": "0"}),
    "no index": Shape(choice={"index": None}),
    # Texts in parts.
    "parts": Shape(message={"content": [{"type": "text", "text": TEXT[:4]},
                                        {"type": "text", "text": TEXT[4:]}]}),
    "parts that are texts": Shape(message={"content": [TEXT[:4], TEXT[4:]]}),
    "a refusal": Shape(
        message={"content": None, "refusal": "I will not."}, text="I will not.", status="refused"
    ),
    "a refusal as a part": Shape(
        message={"content": [{"type": "refusal", "refusal": "I will not."}]}, text="I will not.",
        status="refused",
    ),
    "half a sign in each event": Shape(
        message={"content": "\U0001f600"}, deltas=({"content": "\ud83d"}, {"content": "\ude00"}),
        text="\U0001f600",
    ),
    "truncated": Shape(choice={"finish_reason": "length"}, status="truncated", finish="length"),
    # Streams.
    "the whole message in the last event": Shape(
        choice={"delta": None, "message": {"content": TEXT}}, deltas=({"content": None},),
        ways="stream",
    ),
    "events without data": Shape(tail=(None, {}), ways="stream"),
    "reasons that are empty until the end": Shape(
        tail=({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": ""}]},),
        ways="stream",
    ),
    "a body for a stream": Shape(ways="unstreamed"),
    "a stream for a body": Shape(ways="unasked"),
}  # fmt: skip


def is_right(shape: Shape, row: dict[str, Any]) -> None:
    tokens = tuple(row[f"{name}_tokens"] for name in
                   ("prompt", "completion", "cache_read", "cache_write", "reasoning"))  # fmt: skip
    assert tokens == shape.tokens
    assert row["cost_usd"] == (None if shape.usd is None else pytest.approx(shape.usd / 1e6))
    said = row["text"], row["status"], row["finish_reason"], row["served_model"]
    assert said == (shape.text, shape.status, shape.finish, shape.served)
    assert "" not in row.values()


def pool(server: Loopback) -> Pool:
    return pool_of(server, Model(model_id="m", **PRICES))


def shapes_of(*ways: str) -> list[str]:
    return [name for name, shape in SHAPES.items() if {*ways} & set(shape.ways.split())]


def asked(
    server: Loopback, folder: Path, names: list[str], requests: Callable[[], int], **settings: Any
) -> None:
    """Ask for all; look at each row, and that a second run asks nothing."""
    with SqliteLedger(folder / "ledger.sqlite") as ledger:
        for _ in range(2):
            rows = ask(ledger, pool(server), names, **settings).rows
            assert requests() == len(names)
    wrong = {}
    for row in rows:
        try:
            is_right(SHAPES[row["query_id"]], row)
        except AssertionError as error:
            wrong[row["query_id"]] = str(error)
    assert not wrong, wrong
    assert len(rows) == len(names)


@pytest.mark.parametrize("stream", [False, True], ids=["bodies", "streams"])
def test_replies(stream: bool, tmp_path: Path) -> None:
    def behave(body: dict[str, Any], seen: int) -> Do:
        shape = SHAPES[body["messages"][0]["content"]]
        if (stream or "unasked" in shape.ways) and "unstreamed" not in shape.ways:
            headers = {"content-type": "text/event-stream"}
            return Do(body=streamed(shape.events()), headers=headers)
        return answer(shape.body())

    names = shapes_of("stream", "unstreamed") if stream else shapes_of("body", "unasked")
    with Loopback(behave) as server:
        asked(server, tmp_path, names, lambda: server.requests, stream=stream)


def test_the_check_says_which_counts_are_unknown(tmp_path: Path) -> None:
    names = ["openai", "a total below its parts", "neither increments nor counts"]

    def behave(body: dict[str, Any], seen: int) -> Do:
        shape = SHAPES[body["messages"][0]["content"]]
        return Do(body=streamed(shape.events()), headers={"content-type": "text/event-stream"})

    with Loopback(behave) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        rows = ask(ledger, pool(server), names, stream=True).rows
        found = audit(RESPONSES.from_rows(rows), models_table(pool(server)))
    [missing] = [finding for finding in found if finding.check == "usage_missing"]
    assert missing.says.startswith(
        "answers without usage, or with counts that contradict each other"
    )
    assert {query for query, _ in missing.rows} == set(names[1:])


class Lines(Batches):
    """Answers each line with the shape that its prompt names."""

    def finish(self, batch: dict[str, Any]) -> None:
        batch |= {"status": "COMPLETED", "error_file_id": "", "output_file_id": "file-out"}
        lines = []
        for line in self.files[batch["input_file_id"]].splitlines():
            request = json.loads(line)
            body = SHAPES[request["body"]["messages"][0]["content"]].body()
            response = {"status_code": "200", "request_id": "", "body": body}
            if request["custom_id"] == "0":
                response["body"] = json.dumps(body)
            lines.append({"id": "", "custom_id": request["custom_id"], "response": response,
                          "error": {}})  # fmt: skip
        self.files["file-out"] = b"\n".join(json.dumps(line).encode() for line in lines)


def test_lines_of_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routeyard.pipelines.collect.batch.POLL_S", 0.02)
    with Lines() as server:
        asked(server, tmp_path, shapes_of("batch"), lambda: len(server.asked), transport="batch")


@pytest.mark.parametrize("absent", [None, "", " ", {}, []], ids=repr)
@pytest.mark.parametrize("file", ["output_file_id", "error_file_id"])
def test_a_batch_without_one_of_its_files(
    file: str, absent: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`"error_file_id": ""` was asked for as a file: the batch could not be read, at every try."""
    monkeypatch.setattr("routeyard.pipelines.collect.batch.POLL_S", 0.02)

    class One(Batches):
        def finish(self, batch: dict[str, Any]) -> None:
            super().finish(batch)
            batch[file] = absent

    name = "bad" if file == "output_file_id" else "q"
    with One() as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        [row] = ask(ledger, pool(server), [name], transport="batch").rows
        assert (row["text"], row["error"]) in [("re q", None), (None, "http_400: too odd")]
        assert ledger.recall("batch:") == {}


ERRORS: dict[str, tuple[int, Any]] = {
    "detail beside null": (400, {"error": None, "detail": "too long"}),
    "message beside nothing": (400, {"error": {}, "message": "too long"}),
    "an empty message": (400, {"error": {"message": "", "detail": "too long"}}),
    "a text": (400, {"error": "too long"}),
    "google's list": (400, [{"error": {"code": 400, "message": "too long", "status": "BAD"}}]),
    "vllm's, as a success": (200, {"object": "error", "message": "too long", "code": 400}),
    "a success with a code": (200, {"error": {"message": "too long", "code": "400"}}),
    "a success with an error in its choice": (
        200, {"choices": [{"index": 0, "error": {"message": "too long", "code": 400}}]}
    ),
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True], ids=["bodies", "streams"])
def test_errors_say_what_they_say_in_whatever_place(stream: bool, tmp_path: Path) -> None:
    def behave(body: dict[str, Any], seen: int) -> Do:
        status, data = ERRORS[body["messages"][0]["content"]]
        streams = stream and status == 200
        return Do(status, streamed([data]) if streams else json.dumps(data).encode())

    with Loopback(behave) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        rows = ask(ledger, pool(server), [*ERRORS], stream=stream).rows
        assert {row["query_id"]: row["error"] for row in rows} == dict.fromkeys(
            ERRORS, "http_400: too long"
        )
        assert server.requests == len(ERRORS)
