"""Routeyard works where the user has packages of the names that our folders have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = ("schemas", "pipelines", "flows", "datacards", "papers", "tests", "benchmarks")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with a package of each of our names."""
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OWNER = 'the user of {name}'\n")
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python in the folder, which comes first on its path, as for a script of the user's."""
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_the_users_packages_and_ours_work_side_by_side(folder: Path, demo_release: Path) -> None:
    # Today's code raised "routeyard needs its own package 'flows'", or took the user's `schemas`.
    code = f"""
import schemas, pipelines, flows, datacards, routeyard
with routeyard.open_release({str(demo_release)!r}) as release:
    print(release.arrow("labels").num_rows)
routeyard.plan("demo", workspace="yard")
from routeyard.flows.cli import run
assert run(["build", "demo", "--until", "ingest", "--json"]) == 0
routeyard.evaluate({str(demo_release)!r}, ["random"], resamples=50)
print(schemas.OWNER, pipelines.OWNER, flows.OWNER, datacards.OWNER)
"""
    done = run(folder, "-c", code)
    assert done.returncode == 0, done.stderr
    assert "the user of schemas the user of pipelines the user of flows" in done.stdout


def test_the_entry_point_of_deployments_loads() -> None:
    code = (
        "from prefect.flows import load_flow_from_entrypoint; "
        "flow = load_flow_from_entrypoint('routeyard.flows.build:build'); "
        "import routeyard.flows.build; assert flow is routeyard.flows.build.build"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
