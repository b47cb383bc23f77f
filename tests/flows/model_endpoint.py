"""A provider on loopback whose list of models a test changes; it answers every model it lists."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _send(self, body: dict[str, Any] | None) -> None:
            status, said = state.reply(self.path, body)
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self._send(None)

        def do_POST(self) -> None:
            self._send(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
