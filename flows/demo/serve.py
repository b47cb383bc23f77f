"""What `demo`, `agent_demo` and `image_demo` name: questions on disk, addresses of pools."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from routeyard.flows.demo import answers as bank
from routeyard.flows.demo.server import running, write_pictures


def bank_file(root: Path) -> AbstractContextManager[str]:
    """The demo's questions, written into the workspace."""
    return nullcontext(str(bank.write(root / "demo" / "bank.jsonl")))


def served_pool(root: Path) -> AbstractContextManager[str]:
    """Address of the simulated pool, which is served while it is needed."""

    return running()


def picture_folder(root: Path) -> AbstractContextManager[str]:
    """The questions of `image_demo` and their pictures, written into the workspace."""

    return nullcontext(str(write_pictures(root / "demo" / "pictures")))


def served_eyes(root: Path) -> AbstractContextManager[str]:
    """Address of the simulated models that see, which are served while they are needed."""

    return running("pictures")


def hops_file(root: Path) -> AbstractContextManager[str]:
    """The questions of `agent_demo`, written into the workspace."""
    return nullcontext(str(bank.write_hops(root / "demo" / "hops")[0]))


def served_agents(root: Path) -> AbstractContextManager[str]:
    """Address of the simulated agents, which are served while they are needed."""

    return running("rehearsed", bank=str(bank.write_hops(root / "demo" / "hops")[1]))
