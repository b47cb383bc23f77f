"""A provider on loopback whose list of models a test changes; it answers every model it lists."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from tests.loopback import in_thread


class Endpoint:
    """`models` is what it serves; `lists` whether `/models` exists; `asked` counts per model."""

    def __init__(self, *models: str) -> None:
        self.models = list(models)
        self.lists = True
        self.asked: Counter[str] = Counter()
        self.url = ""

    def reply(self, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        if body is None and path.endswith("/models") and self.lists:
            return 200, {"object": "list", "data": [{"id": name} for name in self.models]}
        if body is None or body["model"] not in self.models:
            return 404, {"error": {"message": "unknown"}}
        self.asked[body["model"]] += 1
        text = f"Answer: {len(body['messages'][-1]['content'])}"
        said = {"index": 0, "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
        choices = [{**said, "finish_reason": "stop"}]
        return 200, {"id": "c", "model": body["model"], "choices": choices, "usage": usage}


@contextmanager
def endpoint(*models: str) -> Iterator[Endpoint]:
    state = Endpoint(*models)

    async def answer(request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read()) if request.method == "POST" else None
        status, said = state.reply(request.path, body)
        return web.json_response(said, status=status)

    with in_thread({"*": answer}) as address:
        state.url = f"{address}/v1"
        yield state
