"""What the `demo` recipe names: the question bank on disk and the simulated pool's address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def bank_file(root: Path) -> Iterator[str]:
    """The demo's questions, written into the workspace."""
    from flows.demo.bank import write

    yield str(write(root / "demo" / "bank.jsonl"))


@contextmanager
def served_pool(root: Path) -> Iterator[str]:
    """Address of the simulated pool, which is served while it is needed."""
    from flows.demo.server import running

    with running() as base_url:
        yield base_url
