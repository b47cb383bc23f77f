"""What `demo`, `agent_demo` and `image_demo` name: questions on disk, addresses of pools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def bank_file(root: Path) -> Iterator[str]:
    """The demo's questions, written into the workspace."""
    from routeyard.flows.demo.bank import write

    yield str(write(root / "demo" / "bank.jsonl"))


@contextmanager
def served_pool(root: Path) -> Iterator[str]:
    """Address of the simulated pool, which is served while it is needed."""
    from routeyard.flows.demo.server import running

    with running() as base_url:
        yield base_url


@contextmanager
def picture_folder(root: Path) -> Iterator[str]:
    """The questions of `image_demo` and their pictures, written into the workspace."""
    from routeyard.flows.demo.pictures import write_pictures

    yield str(write_pictures(root / "demo" / "pictures"))


@contextmanager
def served_eyes(root: Path) -> Iterator[str]:
    """Address of the simulated models that see, which are served while they are needed."""
    from routeyard.flows.demo.server import running

    with running("pictures") as base_url:
        yield base_url


@contextmanager
def hops_file(root: Path) -> Iterator[str]:
    """The questions of `agent_demo`, written into the workspace."""
    from routeyard.flows.demo.bank import write_hops

    yield str(write_hops(root / "demo" / "hops")[0])


@contextmanager
def served_agents(root: Path) -> Iterator[str]:
    """Address of the simulated agents, which are served while they are needed."""
    from routeyard.flows.demo.bank import write_hops
    from routeyard.flows.demo.server import running

    with running("rehearsed", bank=str(write_hops(root / "demo" / "hops")[1])) as base_url:
        yield base_url
