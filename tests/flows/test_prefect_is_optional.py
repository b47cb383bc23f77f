"""Where no Prefect API is configured Prefect is not imported; where one may be, it decides."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT

_USED = """
import sys
from routeyard.flows.cli import run
code = run(sys.argv[1:])
print("prefect" in sys.modules)
sys.exit(code)
"""
_ASKED = "from routeyard.flows.tracking import api_configured; print(api_configured())"


Python = Callable[..., str]


@pytest.fixture
def python(warm_python: list[str], tmp_path: Path) -> Python:
    """Last line of what Python prints in the folder, with no settings of Prefect but those."""

    def python(*words: str, **given: str) -> str:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
        done = subprocess.run(
            [*warm_python, "-c", *words],
            cwd=tmp_path,
            env=kept | {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)} | given,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    return python


def test_a_build_and_status_without_an_api_import_no_prefect(
    tmp_path: Path, python: Python
) -> None:
    (tmp_path / "pyproject.toml").write_text('dependencies = ["prefect"]\n')
    assert python(_USED, "build", "demo", "--until", "ingest") == "False"
    assert python(_USED, "status", "demo") == "False"


#: Each is found in a way of its own, but `pyproject.toml` as `.env` is.
PLACES = [
    "environment",
    ".env",
    "profiles.toml",
    pytest.param("pyproject.toml", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("place", PLACES)
def test_an_api_is_found_wherever_prefect_finds_it(
    place: str, tmp_path: Path, python: Python
) -> None:
    address, given = "http://127.0.0.1:9/api", {}
    if place == "environment":
        given = {"PREFECT_API_URL": address}
    elif place == ".env":
        (tmp_path / ".env").write_text(f"PREFECT_API_URL={address}\n")
    elif place == "profiles.toml":
        (tmp_path / ".prefect").mkdir()
        text = f'active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "{address}"\n'
        (tmp_path / ".prefect" / place).write_text(text)
    else:
        (tmp_path / place).write_text(f'[tool.prefect.api]\nurl = "{address}"\n')
    assert python(_ASKED, **given) == "True"
