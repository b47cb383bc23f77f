"""What the `demo` recipe needs around it: the question bank on disk and the server running."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BANK = "ROUTEYARD_DEMO_BANK"
URL = "ROUTEYARD_DEMO_URL"


@contextmanager
def surroundings(benchmark: str, root: Path, *, serve: bool = True) -> Iterator[None]:
    """Bank and simulated pool for the benchmark `demo`; nothing for any other.

    A server that is already named by ROUTEYARD_DEMO_URL is used as it is.

    Args:
        serve: Start the server; a plan asks nothing and needs none.
    """
    if benchmark != "demo":
        yield
        return
    from flows.demo.bank import write
    from flows.demo.server import running

    before = {name: os.environ.get(name) for name in (BANK, URL)}
    try:
        if not before[BANK]:
            os.environ[BANK] = str(write(root / "demo" / "bank.jsonl"))
        if before[URL] or not serve:
            yield
        else:
            with running() as base_url:
                os.environ[URL] = base_url
                yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
