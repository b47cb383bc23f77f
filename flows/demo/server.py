"""The simulated pool behind a real OpenAI-compatible HTTP server on loopback.

    python -m flows.demo.server --port 0

prints the base URL and serves `/v1/chat/completions` (also streamed), `/v1/models` with
prices, `/counts` (what was asked and answered, for tests) and `/health`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

from flows.demo.answers import tokens
from flows.demo.completions import HttpReply, SimulatedPool

_MOST_BYTES = 4_000_000


class Served(Protocol):
    """Who answers behind the server."""

    at_once: int
    most_at_once: int
    answered: dict[tuple[str, str, int], int]

    def complete(self, request: Any) -> HttpReply | asyncio.Future[HttpReply]:
        """One chat completion, now or when it is made."""

    def models(self) -> dict[str, Any]:
        """What `/v1/models` says."""

    def counts(self) -> dict[str, Any]:
        """What `/counts` says."""


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive; one request at a time, later ones wait in the buffer.

    Written by hand because a pool of thousands of requests a second must leave the
    machine to the client that is being shown.
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        self.buffer = bytearray()
        self.busy = False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self._next()

    def _next(self) -> None:
        if self.busy or self.transport is None:
            return
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self.buffer) > 65_536:
                self._send(431, {"error": {"message": "headers too long"}}, close=True)
            return
        first, *lines = bytes(self.buffer[:end]).decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal() or "transfer-encoding" in headers:
            self._send(411, {"error": {"message": "send a content-length"}}, close=True)
            return
        if int(length) > _MOST_BYTES:
            self._send(413, {"error": {"message": "the body is too long"}}, close=True)
            return
        stop = end + 4 + int(length)
        if len(self.buffer) < stop:
            return
        body = bytes(self.buffer[end + 4 : stop])
        del self.buffer[:stop]
        self.busy = True
        method, _, rest = first.partition(" ")
        self._route(method, rest.partition(" ")[0].partition("?")[0], body)

    def _route(self, method: str, path: str, body: bytes) -> None:
        match method, path:
            case "POST", "/v1/chat/completions":
                self._complete(body)
            case "GET", "/v1/models":
                self._send(200, self.served.models())
            case "GET", "/counts":
                self._send(200, self.served.counts())
            case "GET", "/health":
                self._send(200, {"status": "ok"})
            case _:
                self._send(404, {"error": {"message": f"no route {method} {path}"}})

    def _complete(self, body: bytes) -> None:
        try:
            request: Any = json.loads(body)
        except (ValueError, RecursionError):
            request = None
        reply = self.served.complete(request)
        self.served.at_once += 1
        self.served.most_at_once = max(self.served.most_at_once, self.served.at_once)
        if isinstance(reply, asyncio.Future):
            reply.add_done_callback(partial(self._made, request))
        else:
            self._wait(reply, request)

    def _made(self, request: Any, made: asyncio.Future[HttpReply]) -> None:
        if fault := made.exception():
            error = {"message": f"{type(fault).__name__}: {fault}"}
            self._wait(HttpReply(500, {"error": error}), request)
        else:
            self._wait(made.result(), request)

    def _wait(self, reply: HttpReply, request: Any) -> None:
        send = partial(self._answer, reply, request)
        if reply.wait_s > 0:
            asyncio.get_running_loop().call_later(reply.wait_s, send)
        else:
            send()

    def _answer(self, reply: HttpReply, request: Any) -> None:
        self.served.at_once -= 1
        if self.transport is None or self.transport.is_closing():
            return  # the client went away; nothing was answered
        if reply.key:
            self.served.answered[reply.key] += 1
        if reply.status == 200 and request.get("stream"):
            usage = (request.get("stream_options") or {}).get("include_usage", False)
            self._write(200, _events(reply, usage), "text/event-stream", ())
        else:
            self._send(reply.status, reply.body, reply.headers)

    def _send(
        self,
        status: int,
        body: Any,
        headers: tuple[tuple[str, str], ...] = (),
        *,
        close: bool = False,
    ) -> None:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        self._write(status, text, "application/json", headers, close=close)

    def _write(
        self,
        status: int,
        body: bytes,
        kind: str,
        headers: tuple[tuple[str, str], ...],
        *,
        close: bool = False,
    ) -> None:
        if self.transport is None:
            return
        head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"content-type: {kind}"]
        head += [f"content-length: {len(body)}", *(f"{name}: {value}" for name, value in headers)]
        if close:
            head.append("connection: close")
        self.transport.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        self.busy = False
        if close:
            self.transport.close()
        elif self.buffer:
            # Not called directly: a long pipeline must not become a deep stack.
            asyncio.get_running_loop().call_soon(self._next)


def _events(reply: HttpReply, include_usage: bool) -> bytes:
    """A completion as server-sent events, one token each."""
    body = {k: v for k, v in reply.body.items() if k not in ("choices", "usage")}
    body["object"] = "chat.completion.chunk"
    chunks: list[dict[str, Any]] = []
    for choice in reply.body["choices"]:
        said = choice["message"]
        logprobs = (choice["logprobs"] or {}).get("content")
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in tokens(said["content"] or "")]
        if said["refusal"]:
            deltas.append({"refusal": said["refusal"]})
        for i, delta in enumerate(deltas):
            held = {"content": [logprobs[i - 1]]} if logprobs and 0 < i <= len(logprobs) else None
            part = {"index": choice["index"], "delta": delta, "finish_reason": None}
            chunks.append({**body, "choices": [{**part, "logprobs": held}]})
        last = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
        chunks.append({**body, "choices": [{**last, "logprobs": None}]})
    if include_usage:
        chunks.append({**body, "choices": [], "usage": reply.body["usage"]})
    lines = [f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks]
    return ("".join(lines) + "data: [DONE]\n\n").encode()


async def serve(served: Served, port: int) -> None:
    """Serve until cancelled; the first line on the standard output is the base URL."""
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(served), "127.0.0.1", port)
    bound = listening.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{bound}/v1", flush=True)
    async with listening:
        await listening.serve_forever()


@contextmanager
def running(
    *, port: int = 0, seed: int = 0, latency: float = 1.0, faults: float = 1.0
) -> Iterator[str]:
    """The server in a process of its own; yields its base URL (`http://127.0.0.1:PORT/v1`).

    Args:
        latency: Factor on the simulated latencies; 0 answers at once.
        faults: Factor on the rate of 429 and 500 answers.
    """
    command = [sys.executable, "-m", "flows.demo.server", "--port", str(port), "--seed", str(seed)]
    command += ["--latency", str(latency), "--faults", str(faults), "--with-parent"]
    with serving(command) as url:
        yield url


@contextmanager
def serving(command: Sequence[str]) -> Iterator[str]:
    """A server in a process of its own that prints its base URL; it is ended on leaving."""
    # The package may not be installed, only found from where the caller runs.
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError(f"{command[2]} did not start (exit code {process.wait(10)})")
        yield url
    finally:
        process.terminate()
        process.wait(10)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def watch_parent() -> None:
    """End when the parent's end of the pipe closes, also when it was killed."""
    import os
    import threading

    def wait() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Start the server from the command line."""
    parser = argparse.ArgumentParser(description="The simulated pool of the Routeyard demo.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other answers")
    parser.add_argument("--latency", type=float, default=1.0, help="factor on latencies")
    parser.add_argument("--faults", type=float, default=1.0, help="factor on 429 and 500 answers")
    parser.add_argument("--with-parent", action="store_true", help="end when stdin closes")
    given = parser.parse_args()
    if given.with_parent:
        watch_parent()
    served = SimulatedPool(seed=given.seed, faults=given.faults, latency=given.latency)
    try:
        asyncio.run(serve(served, given.port))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
