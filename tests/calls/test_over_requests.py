"""xVerify is asked over `requests`: what goes wrong there means what it means over aiohttp."""

from __future__ import annotations

import asyncio
import json

import pytest

from routeyard.pipelines.collect.client import Client, RequestsClient, Timeouts
from routeyard.pipelines.collect.reply import CallFault, ModelReply
from routeyard.schemas.recipe.pool import Provider
from tests.calls.loopback import Do, Loopback, completion

KEY = "sk-secret-123456"
_BODY = json.dumps(completion("42" * 500)).encode()
REPLIES = {
    "well formed": Do(body=_BODY, headers={"set-cookie": "a=b"}),
    "too many": Do(
        status=429,
        body=json.dumps({"error": {"message": f"slow {KEY}"}}).encode(),
        headers={"retry-after": "3"},
    ),
    "cut": Do(body=_BODY, cut=50),
    "silent": Do(hang=True),
    "a web page": Do(body=b"<html>"),
    "a redirect": Do(status=302, headers={"location": "http://127.0.0.1:1/"}),
}


def _ask(kind: type[Client], url: str, calls: int) -> list[ModelReply | tuple[object, ...]]:
    async def one(client: Client) -> ModelReply | tuple[object, ...]:
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        try:
            return (await client.complete("/chat/completions", body)).reply
        except CallFault as fault:
            shown = KEY in str(fault)
            return fault.kind, fault.status, fault.maybe_billed, fault.unreachable, shown

    async def run() -> list[ModelReply | tuple[object, ...]]:
        provider = Provider(name="p", base_url=url, api_key_env="OVER_REQUESTS_KEY")
        timeouts = Timeouts(deadline_s=1.0)
        async with kind(provider, connections=8, timeouts=timeouts) as client:
            return list(await asyncio.gather(*(one(client) for _ in range(calls))))

    return asyncio.run(run())


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_means_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVER_REQUESTS_KEY", KEY)
    results = []
    for kind in (Client, RequestsClient):
        with Loopback(lambda body, seen: REPLIES[name]) as server:
            results.append(_ask(kind, server.base_url, 16 if name == "well formed" else 1))
            assert not any(b"cookie:" in head.lower() for head in server.headers)
    assert results[0] == results[1]
    assert not any(item[-1] for item in results[1] if isinstance(item, tuple))
    assert isinstance(results[0][0], ModelReply) == (name == "well formed")


def test_where_nobody_listens_nothing_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVER_REQUESTS_KEY", KEY)
    asked = [_ask(kind, "http://127.0.0.1:9/v1", 1) for kind in (Client, RequestsClient)]
    assert asked[0] == asked[1] == [("connection", None, False, True, False)]
