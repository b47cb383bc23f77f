"""A pool of models behind an OpenAI-compatible HTTP server on loopback.

    python -m routeyard.flows.demo.server simulated

prints the base URL and serves `/v1/chat/completions` (also streamed), `/v1/models` with
prices, `/counts` (what was asked and answered, for tests) and `/health`.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import logging
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

from aiohttp import web

from routeyard.flows.demo.answers import tokens
from routeyard.flows.demo.completions import HttpReply, nested
from routeyard.pipelines.common.machine import collect_rarely

# The HTTP server of the demo, the tests and the benchmarks: routes are functions, on loopback.
#
# with in_process([sys.executable, "-m", "routeyard.flows.demo.server"]) as url: ...

Route = Callable[[web.Request], Awaitable[web.StreamResponse]]
_MOST_BYTES = 4_000_000


async def start(routes: Mapping[str, Route], port: int = 0) -> tuple[web.AppRunner, str]:
    """A running server, and its address without a final slash.

    Args:
        routes: `METHOD /path` → what answers it; `*` answers what no other route does.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        route = routes.get(f"{request.method} {request.path}", routes.get("*"))
        if route is None:
            return failure(404, f"no route {request.method} {request.path}")
        try:
            return await route(request)
        except web.HTTPException:
            raise
        except Exception as fault:
            return failure(500, f"{type(fault).__name__}: {fault}")

    application = web.Application(client_max_size=_MOST_BYTES)
    application.router.add_route("*", "/{path:.*}", answer)
    # The response says what is wrong with the request; the server's output is the demo's.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def failure(status: int, message: str) -> web.Response:
    """An error in the form of the OpenAI API."""
    return web.json_response({"error": {"message": message}}, status=status)


@contextmanager
def in_process(command: Sequence[str]) -> Iterator[str]:
    """The address that a server in a child process prints; the process is ended on leaving."""
    # The package may not be installed, only found from where the caller runs.
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(  # noqa: S603  (our own interpreter and module)
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if not (url := process.stdout.readline().strip()):
                raise RuntimeError(f"{command[2]} did not start (exit code {process.wait(10)})")
            yield url
        finally:
            process.terminate()
            process.wait(10)


#: Pools that a process can serve, by name.
POOLS = {
    "simulated": "routeyard.flows.demo.completions:SimulatedPool",
    "pictures": "routeyard.flows.demo.pictures:PicturePool",
    "rehearsed": "routeyard.flows.demo.rehearsed:RehearsedPool",
    "real": "routeyard.flows.demo.real.served:RealPool",
}


class ServedPool(Protocol):
    """The answering side of the server."""

    def complete(self, request: Any) -> HttpReply | asyncio.Future[HttpReply]:
        """One chat completion, now or when it is made."""

    def models(self) -> dict[str, Any]:
        """The body of `/v1/models`."""

    def counts(self) -> dict[str, Any]:
        """What `/counts` has of the pool; the server adds what it sent."""


def routes(pool: ServedPool) -> dict[str, Route]:
    """The routes of a pool, with counts of what was sent in full and at once."""
    answered: Counter[tuple[str, str, int]] = Counter()
    at_once = most_at_once = 0

    async def complete(request: web.Request) -> web.StreamResponse:
        nonlocal at_once, most_at_once
        try:
            asked: Any = json.loads(await request.read())
        except (ValueError, RecursionError):
            asked = None
        at_once += 1
        most_at_once = max(most_at_once, at_once)
        try:
            made = pool.complete(asked)
            reply = await made if inspect.isawaitable(made) else made
            await asyncio.sleep(reply.wait_s)
        finally:
            at_once -= 1
        if request.transport is None or request.transport.is_closing():
            return web.Response()  # the client went away; nothing was answered
        if reply.key:
            answered[reply.key] += 1
        if reply.status == 200 and asked.get("stream"):
            usage = (asked.get("stream_options") or {}).get("include_usage", False)
            return web.Response(body=_events(reply, usage), content_type="text/event-stream")
        return web.json_response(reply.body, status=reply.status, headers=dict(reply.headers))

    async def models(request: web.Request) -> web.StreamResponse:
        return web.json_response(pool.models())

    async def counts(request: web.Request) -> web.StreamResponse:
        sent = {"answers": answered.total(), "most_at_once": most_at_once}
        return web.json_response({**pool.counts(), **sent, "answered": nested(answered)})

    async def health(request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "ok"})

    return {
        "POST /v1/chat/completions": complete,
        "GET /v1/models": models,
        "GET /counts": counts,
        "GET /health": health,
    }


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


@contextmanager
def running(pool: str = "simulated", *, port: int = 0, **settings: Any) -> Iterator[str]:
    """The base URL (`http://127.0.0.1:PORT/v1`) of one of `POOLS`, served by a child process.

    Args:
        settings: Of the pool. Of the simulated one: `seed`; `latency`, a factor on the simulated
            latencies, of which 0 answers at once; `faults`, one on the rate of 429 and 500.
    """
    command = [sys.executable, "-m", "routeyard.flows.demo.server", pool, "--port", str(port)]
    with in_process([*command, "--settings", json.dumps(settings), "--with-parent"]) as url:
        yield url


async def _serve(pool: ServedPool, port: int) -> None:
    _, address = await start(routes(pool), port)
    print(f"{address}/v1", flush=True)
    await asyncio.Event().wait()


def _end_with_parent() -> None:
    """End when the parent's end of the pipe closes, also when it was killed."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve a pool until the process is ended; the first line printed is the base URL."""
    parser = argparse.ArgumentParser(description="A pool of models for demos, on loopback.")
    parser.add_argument("pool", choices=list(POOLS), nargs="?", default="simulated")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--settings", type=json.loads, default={}, help="of the pool, as JSON")
    parser.add_argument("--with-parent", action="store_true", help="end when stdin closes")
    given = parser.parse_args()
    collect_rarely()
    if given.with_parent:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    settings: Mapping[str, Any] = given.settings
    try:
        asyncio.run(_serve(resolve_name(POOLS[given.pool])(**settings), given.port))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
