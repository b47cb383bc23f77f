"""The demo, built once per session through the command line, and a way to call commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Call = Callable[..., "subprocess.CompletedProcess[str]"]


def routeyard(
    *words: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a `routeyard` command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "flows", *map(str, words)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="session")
def call() -> Call:
    return routeyard


@pytest.fixture(scope="session")
def demo_yard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Workspace of an undisturbed demo build."""
    yard = tmp_path_factory.mktemp("demo") / "yard"
    done = routeyard("demo", "--workspace", yard)
    assert done.returncode == 0, done.stderr
    (yard / "printed.txt").write_text(done.stdout)
    return yard


@pytest.fixture(scope="session")
def demo_release(demo_yard: Path) -> Path:
    return demo_yard / "releases" / "demo" / "1.0.0"
