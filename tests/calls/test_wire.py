"""Limits of the wire: bytes before and after decompression, redirects, silence, nobody there."""

from __future__ import annotations

import gzip
import socket
import time
import tracemalloc
from pathlib import Path
from typing import Any, ClassVar

import pytest

from routeyard.pipelines.collect import client as limits
from routeyard.pipelines.collect.client import get_json, list_models
from routeyard.pipelines.collect.reply import CallFault
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.label.judges import verify
from routeyard.schemas.recipe import Verifier
from routeyard.schemas.recipe.collect import Retry
from routeyard.schemas.recipe.pool import Provider
from tests.calls.asking import ask, pool_of
from tests.calls.loopback import Do, Loopback, answer, completion
from tests.label.test_xverify import queries, responses

ONCE = Retry(attempts=1)


def asked(server: Loopback, folder: Path, **settings: Any) -> dict[str, Any]:
    """The one row that a question brings."""
    with SqliteLedger(folder / "l.sqlite") as ledger:
        (row,) = ask(ledger, pool_of(server), **({"retry": ONCE} | settings)).rows
        return row


def verified(server: Loopback, folder: Path) -> str:
    """Why a verifier gave no verdict: the same limits, over the other transport."""
    by = Verifier(name="x", provider=Provider(name="p", base_url=server.base_url), retry=ONCE)
    with SqliteLedger(folder / "v.sqlite") as ledger:
        filed = verify(queries(1), responses(1, "m"), by, ledger, run="r")
    return str(filed.verdicts["reason"][0].as_py())


def bomb(megabytes: int) -> bytes:
    packed = gzip.compress(b"0" * (megabytes * 2**20), compresslevel=9)
    return packed


@pytest.mark.parametrize("status", [200, 500])
def test_a_gzip_bomb_is_cut_off(status: int, tmp_path: Path) -> None:
    packed = bomb(100)
    do = Do(status=status, body=packed, headers={"content-encoding": "gzip"})
    with Loopback(lambda body, seen: do) as server:
        tracemalloc.start()
        row = asked(server, tmp_path)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert row["error"].startswith("too_large")
        # 100 MB came in 100 kB; no more than the limit is ever held (twice, while it is joined).
        assert most < 3 * limits.MOST_BYTES
        assert verified(server, tmp_path).startswith("too_large")


def test_an_endless_body_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routeyard.pipelines.collect.client.MOST_BYTES", 50_000)
    with Loopback(lambda body, seen: answer(completion("x" * 100_000))) as server:
        assert asked(server, tmp_path)["error"].startswith("too_large")
        assert verified(server, tmp_path).startswith("too_large")


def test_honest_compression_is_read(tmp_path: Path) -> None:
    import json

    packed = gzip.compress(json.dumps(completion("Correct")).encode())
    do = Do(body=packed, headers={"content-encoding": "gzip"})
    with Loopback(lambda body, seen: do) as server:
        assert asked(server, tmp_path)["text"] == "Correct"
        assert verified(server, tmp_path) == "Correct"


def test_nothing_is_sent_to_another_host(tmp_path: Path) -> None:
    with Loopback(lambda body, seen: answer(completion("stolen"))) as other:
        there = {"location": f"{other.base_url}/chat/completions"}
        with Loopback(lambda body, seen: Do(status=307, headers=there)) as server:
            row = asked(server, tmp_path, retry=Retry(attempts=3, first_wait_s=0))
            assert row["error"].startswith("redirect")
            assert "base_url" in row["error"]
            assert server.requests == 1  # and it is not asked again
            assert verified(server, tmp_path).startswith("redirect")
            assert list_models(Provider(name="p", base_url=server.base_url)).models is None
        assert other.requests == 0


def test_silence_in_the_middle_of_an_answer_ends_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head and half a body, then nothing."""
    short = limits.Timeouts(60.0, idle_s=0.3)
    monkeypatch.setattr("routeyard.pipelines.collect.collect.timeouts_of", lambda collect: short)
    with Loopback(lambda body, seen: Do(body=b'{"choices": [')) as server:
        server.promise = 1000
        started = time.monotonic()
        row = asked(server, tmp_path)
    assert row["error"].startswith("timeout: no byte came for 0.3 s")
    assert time.monotonic() - started < 20


def test_a_first_byte_that_does_not_come_ends_the_call(tmp_path: Path) -> None:
    with Loopback(lambda body, seen: Do(hang=True)) as server:
        row = asked(server, tmp_path, deadline_s=0.3)
    assert (row["status"], row["error"]) == ("timeout", "timeout: no answer within 0.3 s")


def test_a_refused_connection_is_known_in_seconds(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    started = time.monotonic()
    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        # The defaults: 6 attempts for each of 200 questions, 20 of which may fail in a row.
        collected = ask(ledger, pool_of(url), [f"q{i}" for i in range(200)]).ended
        billed = ledger.summary()
    assert time.monotonic() - started < 20
    assert "nobody answers at the address of provider 'p'" in collected.paused["m"]
    assert billed[0]["ok"] == 0
    assert billed[0]["attempts"] <= 8


def test_where_a_name_has_no_address_nothing_was_asked() -> None:
    with pytest.raises(CallFault) as caught:
        get_json(Provider(name="p", base_url="http://nowhere.invalid/v1"), "/models", timeout_s=9)
    assert (caught.value.kind, caught.value.unreachable) == ("connection", True)
    assert not caught.value.maybe_billed


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_lines_of_a_stream_end_at_line_feeds_only(cut: int) -> None:
    """Not at U+2028 and its like, which JSON allows within a text; nor where a piece ends."""
    import asyncio

    from routeyard.pipelines.collect.client import Client

    sent = 'data: {"a": "é\u2028b\x85c"}\r\n\rdata: 2\n\ndata: [DONE]'.encode()
    pieces = [sent[i : i + cut] for i in range(0, len(sent), cut)] + [b""]

    class Opened:
        headers: ClassVar[dict[str, str]] = {}

        @property
        def content(self) -> Any:
            return self

        async def readany(self) -> bytes:
            return pieces.pop(0)

        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *_: object) -> None: ...

    async def read() -> list[str]:
        provider = Provider(name="p", base_url="http://h/v1")
        made = Client(provider, connections=1, timeouts=limits.Timeouts(), use_proxies=False)

        async def head(*_: Any) -> Any:
            return Opened()

        made._head = head  # type: ignore[method-assign]
        return [line async for line in made._events("/chat/completions", {})]

    lines = [line for line in asyncio.run(read()) if line]
    assert lines == ['data: {"a": "é\u2028b\x85c"}', "data: 2", "data: [DONE]"]
