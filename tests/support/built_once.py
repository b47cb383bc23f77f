"""What one of several test processes builds for all of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], Path]) -> Path:
    """What `build` made in a folder of that name, by whichever process came first."""
    shared = factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    made = shared / f"{name}.txt"
    with FileLock(shared / f"{name}.lock"):
        if not made.is_file():
            made.write_text(str(build(shared / name)), encoding="utf-8")
    return Path(made.read_text(encoding="utf-8"))
