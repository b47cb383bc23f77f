"""A budget holds whatever a server says of its tokens, and a plan says where it will stop."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import routeyard
from tests.calls.loopback import Do, Loopback, answer, completion

LIMIT, PRICE, QUESTIONS = 0.1, 100.0, 150
_WORDS = [f"w{random.Random(n).randrange(10**6)}" for n in range(400)]
#: What a server is asked, its own count of both texts, and the number of the call → its reply.
Says = Callable[[str, int, int, int], Do]


def english(seed: int, words: int) -> str:
    return " ".join(random.Random(seed).choices(_WORDS, k=words))


def tokens(text: str) -> int:
    """What a tokenizer makes of it, about."""
    return -(-len(text) // 4)


@dataclass
class Server:
    """Bills every token at the full price, but those that it really has in its cache."""

    says: Says
    #: Beginning of all prompts that it caches, of a server that is honest.
    cache: str = ""
    usd: float = 0.0
    calls: int = 0

    def __call__(self, body: dict[str, Any], seen: int) -> Do:
        prompt = "\n".join(message["content"] for message in body["messages"])
        kept = tokens(self.cache) if self.calls else 0
        self.calls += 1
        asked, said = tokens(prompt), tokens(english(self.calls, 10))
        self.usd += ((asked - kept) * PRICE + kept * PRICE / 10 + said * PRICE) / 1e6
        return self.says(english(self.calls, 10), asked, said, kept)


def usage(prompt: int, said: int, read: int = 0, write: int = 0) -> dict[str, Any]:
    details = {"cached_tokens": read, "cache_write_tokens": write}
    return {
        "prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said,
        "prompt_tokens_details": details,
    }  # fmt: skip


def events(*said: dict[str, Any] | str) -> Do:
    lines = [f"data: {json.dumps(one) if isinstance(one, dict) else one}\n\n" for one in said]
    return Do(body="".join(lines).encode(), headers={"content-type": "text/event-stream"})


def piece(text: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more}


def write(
    folder: Path,
    url: str,
    provider: dict[str, Any] | None = None,
    models: tuple[str, ...] = ("m",),
    **collect: Any,
) -> Path:
    rows = [
        {"id": str(i), "q": f"{english(10_000 + i, 30)}?", "a": str(i)} for i in range(QUESTIONS)
    ]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields = {"id": "id", "question": "q", "references": "a"}
    source = {"name": "s", "path": "q.jsonl", "scorer": "numeric", "license": "CC0-1.0"}
    price = {"price_in": PRICE, "price_out": PRICE, "price_date": "2026-01-01"}
    price |= {"price_cache_read": PRICE / 10, "price_cache_write": PRICE / 10}
    made = {
        "name": "b", "version": "1.0.0",
        "sources": [source | {"fields": fields}],
        "pool": {
            "providers": [{"name": "p", "base_url": url} | (provider or {})],
            "models": [{"model_id": name} | price for name in models],
        },
        "collect": {
            "max_tokens": 40, "limits": {"concurrency": 4}, "budget": {"usd": LIMIT}, **collect,
        },
        "release": {"license": "CC0-1.0"},
    }  # fmt: skip
    path = folder / "recipe.yaml"
    path.write_text(json.dumps(made))
    return path


class Quiet(Loopback):
    """Has no list of models."""

    def receive(self, method: str, path: str, body: bytes) -> Do:
        return super().receive(method, path, body) if body else Do(status=404)


def spend(folder: Path, server: Server, **recipe: Any) -> str:
    """Build until the budget is reached; what the build says."""
    with Quiet(server) as at:
        path = write(folder, at.base_url, **recipe)
        with pytest.raises(routeyard.RouteyardError) as stopped:
            routeyard.build(path, folder / "yard", until="collect")
    return str(stopped.value)


def costs(folder: Path) -> list[tuple[Any, ...]]:
    """(USD, tokens of the prompt, of the answer, text) of each answer in the ledger."""
    with sqlite3.connect(folder / "yard" / "ledger" / "ledger.sqlite") as ledger:
        found = ledger.execute(
            "SELECT cost_usd, prompt_tokens, completion_tokens, text FROM attempts "
            "WHERE status = 'ok'"
        ).fetchall()
    ledger.close()
    return found


LIES: dict[str, Says] = {
    "all of it cached": lambda text, asked, said, _: answer(
        completion(text, usage=usage(asked, said, read=asked))
    ),
    "all of it written to the cache": lambda text, asked, said, _: answer(
        completion(text, usage=usage(asked, said, write=asked))
    ),
    "cached, in the fields of Anthropic": lambda text, asked, said, _: answer(
        completion(
            text,
            usage={
                "input_tokens": 0, "output_tokens": said, "cache_read_input_tokens": asked,
                "cache_creation_input_tokens": 0,
            },
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_server_cannot_call_cached_what_nobody_asked_before(name: str, tmp_path: Path) -> None:
    # 4 to 8 times the budget was spent, with exit code 0.
    server = Server(LIES[name])
    assert "the budget is reached" in spend(tmp_path, server)
    assert LIMIT / 2 < server.usd <= LIMIT


def test_an_audit_says_what_cannot_have_been_cached(call: Any, tmp_path: Path) -> None:
    spend(tmp_path, Server(LIES["all of it cached"]), budget={"usd": 0.6})
    asked = sum(row[1] for row in costs(tmp_path))
    found = call("audit", tmp_path / "yard")
    said = " ".join(found.stdout.split())
    assert re.search(rf"{asked:,} are claimed as read from the cache, and at most [\d,]+ can", said)


def test_a_provider_that_the_recipe_trusts(tmp_path: Path) -> None:
    server = Server(LIES["all of it cached"])
    spend(tmp_path, server, provider={"trust_cached_tokens": True}, budget={"usd": 2 * LIMIT})
    assert server.usd > 2 * (2 * LIMIT)


def test_what_an_honest_server_has_cached_is_cheap_in_budget_and_tables(tmp_path: Path) -> None:
    system = english(1, 200)
    server = Server(
        lambda text, asked, said, kept: answer(completion(text, usage=usage(asked, said, kept))),
        cache=system,
    )
    spend(tmp_path, server, system=system, budget={"usd": 10 * LIMIT})
    # Every answer but the first is cheap: as many fit as the server bills.
    assert 7 * LIMIT < server.usd <= 10 * LIMIT
    assert sum(row[0] for row in costs(tmp_path)) == pytest.approx(server.usd, rel=1e-6)


STREAMS: dict[str, Says] = {
    "smaller": lambda text, asked, said, _: events(
        piece(text, usage=usage(asked, said)),
        piece("", "stop", usage=usage(1, 1)),
        "[DONE]",
    ),
    "as text": lambda text, asked, said, _: events(
        piece(text, usage={k: str(v) for k, v in usage(asked, said).items() if k[-1] == "s"}),
        piece("", "stop", usage={"prompt_tokens": 1, "completion_tokens": 1}),
        "[DONE]",
    ),
    "after the end": lambda text, asked, said, _: events(
        piece(text, "stop", usage=usage(asked, said)),
        "[DONE]",
        piece(" and 4 more words later", usage=usage(1, 1)),
        "{no JSON",
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_counts_of_a_stream_only_grow_and_end_with_it(name: str, tmp_path: Path) -> None:
    server = Server(STREAMS[name])
    assert "the budget is reached" in spend(tmp_path, server, stream=True)
    assert server.usd <= LIMIT
    rows = costs(tmp_path)
    assert len(rows) == server.calls
    assert sum(row[0] for row in rows) == pytest.approx(server.usd, rel=1e-6)
    assert not any("later" in row[3] for row in rows)


def test_a_plan_says_where_the_budget_will_stop_it(call: Any, tmp_path: Path) -> None:
    # A plan of 5.09 USD against a budget of 0.10 said nothing.
    server = Server(lambda text, asked, said, _: answer(completion(text, usage=usage(asked, said))))
    with Quiet(server) as at:
        path = write(tmp_path, at.base_url)
        planned = call("plan", path, "--workspace", tmp_path / "yard")
        said = " ".join(planned.stdout.split())
        assert planned.returncode == 0
        assert "429" in said
        found = re.search(r"will stop after about \d+ % of the calls \((\d+) of 150\)", said)
        with pytest.raises(routeyard.RouteyardError):
            routeyard.build(path, tmp_path / "yard", until="collect")
        assert abs(int(found[1]) - server.calls) <= 2
        # What is spent counts, and a budget that is enough is not warned of.
        more = routeyard.plan(path, tmp_path / "yard", {"budget": {"usd": 0.15}})
        assert 0 < more["budget"]["share_of_calls"] < 0.05
        assert more["budget"]["spent_usd"] == pytest.approx(server.usd)
        assert any("will stop" in note and "spent or set aside" in note for note in more["notes"])
        enough = routeyard.plan(path, tmp_path / "yard", {"budget": {"per_model_usd": 50}})
        assert not any("will stop" in note for note in enough["notes"])
        nothing = routeyard.plan(path, tmp_path / "yard", {"budget": {"models": {"m": 0.05}}})
        assert any("nothing will be asked" in note for note in nothing["notes"])


def test_a_plan_of_a_finished_build_needs_no_budget(tmp_path: Path) -> None:
    # `plan` after a complete build divided by its number of calls.
    server = Server(lambda text, asked, said, _: answer(completion(text, usage=usage(asked, said))))
    with Quiet(server) as at:
        path = write(tmp_path, at.base_url, budget={"usd": 100})
        routeyard.build(path, tmp_path / "yard", until="collect")
        planned = routeyard.plan(path, tmp_path / "yard")
    assert planned["calls"] == 0
    assert not any("budget" in note for note in planned["notes"])


def test_calls_that_wait_for_the_budget_say_once_for_what(call: Any, tmp_path: Path) -> None:
    # A build that nothing but worst cases in flight kept back was silent.
    server = Server(lambda text, asked, said, _: answer(completion(text, usage=usage(asked, said))))
    with Quiet(server) as at:
        path = write(tmp_path, at.base_url, models=("a", "b"), limits={"concurrency": 16})
        done = call("build", path, "--workspace", tmp_path / "yard", "--until", "collect")
    assert "the budget is reached" in done.stderr
    found = re.findall(r"(0\.\d+) USD of the budget are set aside for (\d) calls", done.stderr)
    ((held, calls),) = found
    assert 0 < float(held) <= LIMIT
    assert int(calls) > 0


def test_a_budget_that_unanswered_calls_used_up_says_so_once(tmp_path: Path) -> None:
    models = ("a", "b", "c")
    server = Server(lambda *_: Do(status=500, body=b"{}"))
    said = spend(tmp_path, server, models=models, retry={"attempts": 1, "pause_after": 999})
    assert said.count("the budget is reached") == 1
    assert said.count("set aside") == 1
    kept = re.search(r"0\.0000 USD are the known cost of calls; (0\.\d+) USD are set aside", said)
    assert LIMIT / 2 < float(kept[1]) <= LIMIT
