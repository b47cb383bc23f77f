"""A chat-completions server on loopback: a function says what it answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from tests.loopback import in_thread


class Server:
    """Counts what was asked and what failed, on the side that bills."""

    def __init__(self, says: Callable[[str, int], str | int]):
        self.says = says
        self.prompts: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.failures = 0
        self.connections: set[Any] = set()
        self.lock = threading.Lock()
        self.url = ""


@contextmanager
def serving(says: Callable[[str, int], str | int]) -> Iterator[Server]:
    """`says(prompt, how often it was asked before)`: a text, or an HTTP status."""
    server = Server(says)

    async def answer(request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        prompt = body["messages"][0]["content"]
        with server.lock:
            before = server.prompts.count(prompt)
            server.prompts.append(prompt)
            server.bodies.append(body)
            assert request.transport is not None
            server.connections.add(request.transport.get_extra_info("peername"))
            said = server.says(prompt, before)
            if isinstance(said, int):
                server.failures += 1
                return web.Response(status=said, body=b"{}")
        message = {"role": "assistant", "content": said}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"model": "m", "choices": [choice], "usage": usage})

    with in_thread({"*": answer}) as address:
        server.url = f"{address}/v1"
        yield server
