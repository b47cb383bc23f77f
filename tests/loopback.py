"""A server of the demo in a thread of the test's own process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from routeyard.flows.demo.server import Route, start


@contextmanager
def in_thread(routes: Mapping[str, Route]) -> Iterator[str]:
    """The address of a server that runs in a thread of this process."""
    loop = asyncio.new_event_loop()
    runner, address = loop.run_until_complete(start(routes))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
