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
SOME = ("tests/curate/test_prune.py", "tests/schemas", "tests/mapping", "tests/io")
SLOW = pytest.mark.slow

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


def test_commands_of_extensions_are_gone_and_a_release_is_built(alone: dict[str, str]) -> None:
    # The commands of one process, so that nothing is imported twice.
    code = """
from pathlib import Path
from routeyard.flows.cli import run
from tests.support.small_recorded import build
release = str(build(Path("small")) / "yard/releases/small/1.0.0")
for words in (["--help"], ["verify", release], ["audit", release]):
    assert run(words) == 0, words
"""
    done = _run(alone, "-c", code)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "evaluate" in done.stdout
    assert "reproduce" not in done.stdout
    assert "shadow" not in done.stdout


@pytest.mark.parametrize("tests", [SOME[0], *(pytest.param(t, marks=SLOW) for t in SOME[1:])])
def test_tests_of_the_core_pass(alone: dict[str, str], tests: str) -> None:
    done = _run(alone, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", tests)
    assert done.returncode == 0, done.stdout[-4000:]


def _run(alone: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [alone["PYTHON"], *words]
    return subprocess.run(command, cwd=alone["COPY"], env=alone, capture_output=True, text=True)
