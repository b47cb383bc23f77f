"""A chat-completions server on loopback: a function says what it answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # A server that delays small packets would hide what keep-alive saves.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = body["messages"][0]["content"]
            with server.lock:
                before = server.prompts.count(prompt)
                server.prompts.append(prompt)
                server.bodies.append(body)
                server.connections.add(self.client_address)
                answer = server.says(prompt, before)
                if isinstance(answer, int):
                    server.failures += 1
            if isinstance(answer, int):
                status, sent = answer, b"{}"
            else:
                message = {"role": "assistant", "content": answer}
                usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                reply = {"model": "m", "choices": [choice], "usage": usage}
                status, sent = 200, json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    server.url = f"http://127.0.0.1:{httpd.server_address[1]}/v1"
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
