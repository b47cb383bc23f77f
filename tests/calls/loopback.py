"""A small chat-completions server on loopback whose behaviour a test writes as a function.

`behave(body, seen)` gets the decoded request and how often that (model, prompt,
seed) was seen before, and returns what to do. Everything is counted on the
server's side, which is the side that bills.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Do:
    """What the server does with one request."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    #: Send this many bytes of the body, then reset the connection.
    cut: int | None = None
    #: Send nothing, ever.
    hang: bool = False
    #: Send nothing while this is true.
    held: Callable[[], bool] = lambda: False


def completion(text: str | None = "42", **changes: Any) -> dict[str, Any]:
    """A well-formed completion; `finish`, `model`, `usage`, `choices` may be changed."""
    return {
        "id": "c",
        "object": "chat.completion",
        "model": changes.get("model", "m"),
        "choices": changes.get(
            "choices",
            [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": changes.get("finish", "stop"),
                }
            ],
        ),
        **(
            {}
            if changes.get("usage", 1) is None
            else {
                "usage": changes.get(
                    "usage", {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
                )
            }
        ),
        **changes.get("extra", {}),
    }


def answer(data: Any, **options: Any) -> Do:
    body = json.dumps(data).encode()
    return Do(body=body, headers={"content-type": "application/json"}, **options)


def error(status: int, message: str = "no", **options: Any) -> Do:
    return Do(status=status, body=json.dumps({"error": {"message": message}}).encode(), **options)


Behave = Callable[[dict[str, Any], int], Do]


class Loopback:
    """Context manager: a server in a thread, at `base_url`."""

    def __init__(self, behave: Behave, port: int = 0) -> None:
        self.behave = behave
        #: Times each (model, prompt, seed) was received.
        self.seen: Counter[tuple[str, str, int | None]] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[bytes] = []
        self.most_in_flight = 0
        self.in_flight = 0
        #: Bytes that a head promises beyond those that are sent.
        self.promise = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready = threading.Event()
        self.open: set[Any] = set()
        self.port = port

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> int:
        return sum(self.seen.values())

    def __enter__(self) -> Loopback:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _serve(self) -> None:
        async def main() -> None:
            self._stop = asyncio.Event()
            server = await self._loop.create_server(
                lambda: _Connection(self), "127.0.0.1", self.port, backlog=1024
            )
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()
            await self._stop.wait()
            server.close()
            for transport in list(self.open):
                transport.abort()
            await asyncio.sleep(0)  # each closes its socket

        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(main())
        self._loop.close()

    def receive(self, method: str, path: str, body: bytes) -> Do:
        """What to do with one HTTP request; there is no list of models."""
        if not body:
            return Do(status=404)
        data = json.loads(body)
        prompt = data["messages"][-1]["content"]
        key = (data["model"], prompt, data.get("seed"))
        before = self.seen[key]
        self.seen[key] += 1
        self.bodies.append(data)
        return self.behave(data, before)


class _Connection(asyncio.Protocol):
    def __init__(self, server: Loopback) -> None:
        self.server = server
        self.buffer = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.server.open.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.open.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end]
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(self.buffer) < end + 4 + length:
            return
        body = self.buffer[end + 4 : end + 4 + length]
        self.buffer = self.buffer[end + 4 + length :]
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        self.server.headers.append(head)
        self.server.in_flight += 1
        self.server.most_in_flight = max(self.server.most_in_flight, self.server.in_flight)
        do = self.server.receive(method, path, body)
        if not do.hang:
            asyncio.get_running_loop().call_later(do.delay, self.send, do)

    def send(self, do: Do) -> None:
        if do.held():
            asyncio.get_running_loop().call_later(0.02, self.send, do)
            return
        self.server.in_flight -= 1
        if self.transport.is_closing():
            return
        headers = "".join(f"{name}: {value}\r\n" for name, value in do.headers.items())
        length = len(do.body) + self.server.promise
        head = f"HTTP/1.1 {do.status} X\r\ncontent-length: {length}\r\n{headers}\r\n"
        if self.server.promise:
            asyncio.get_running_loop().call_later(1.5, self.transport.abort)
        if do.cut is None:
            self.transport.write(head.encode() + do.body)
            return
        self.transport.write(head.encode() + do.body[: do.cut])
        # After the bytes are out: abort sends a reset.
        asyncio.get_running_loop().call_later(0.01, self.transport.abort)
