"""The HTTP server of the demo, the tests and the benchmarks: routes are functions, on loopback.

with in_process([sys.executable, "-m", "routeyard.flows.demo.server"]) as url: ...
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

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
