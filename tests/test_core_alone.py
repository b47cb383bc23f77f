"""The core works, and its tests pass, with `extensions/` and `papers/` deleted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.same.side import environment

ROOT = Path(__file__).parents[1]
OTHERS = ("extensions", "papers")
TOPS = (
    "routeyard", "schemas", "pipelines", "flows", "datacards", "benchmarks", "tests", "docs",
    "pyproject.toml", "constraints.txt", "README.md",
)  # fmt: skip
#: Tests of the copy: quick ones of several packages. The whole suite passes there too.
SOME = ("tests/schemas", "tests/mapping", "tests/io", "tests/curate/test_prune.py")

pytestmark = pytest.mark.extensions


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A copy without both, and the environment in which Python finds it and its metadata first."""
    copy = tmp_path_factory.mktemp("alone")
    for name in TOPS:
        if (ROOT / name).is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", *OTHERS)
            shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, copy / name)
    # As an installation of the copy: its packages and no entry points of those that are gone.
    settings = copy / "pyproject.toml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(re.sub(r'(?m)^\w+ = "routeyard\.(extensions|papers)\b.*\n', "", text))
    python = environment(copy, tmp_path_factory.mktemp("environment"))
    return {**os.environ, "PYTHON": str(python), "COPY": str(copy)}


def _run(alone: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [alone["PYTHON"], "-m", *words]
    return subprocess.run(command, cwd=alone["COPY"], env=alone, capture_output=True, text=True)


def test_commands_of_extensions_are_gone_and_a_release_is_built(alone: dict[str, str]) -> None:
    listed = _run(alone, "routeyard", "--help").stdout
    assert "evaluate" in listed
    assert "reproduce" not in listed
    assert "shadow" not in listed
    built = _run(alone, "routeyard", "demo", "--no-open", "--workspace", "yard", "-q")
    assert built.returncode == 0, built.stderr
    release = "yard/releases/demo/1.0.0"
    for words in (("verify", release), ("audit", release)):
        done = _run(alone, "routeyard", *words)
        assert done.returncode == 0, done.stdout + done.stderr


def test_tests_of_the_core_pass(alone: dict[str, str]) -> None:
    done = _run(alone, "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *SOME)
    assert done.returncode == 0, done.stdout[-4000:]
