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
routeyard.evaluate({str(demo_release)!r}, ["random"], resamples=50)
print(schemas.OWNER, pipelines.OWNER, flows.OWNER, datacards.OWNER)
"""
    done = run(folder, "-c", code)
    assert done.returncode == 0, done.stderr
    assert "the user of schemas the user of pipelines the user of flows" in done.stdout


def test_a_command_works_there(folder: Path) -> None:
    done = run(folder, "-m", "routeyard", "build", "demo", "--until", "ingest", "--json")
    assert done.returncode == 0, done.stderr


def test_no_file_is_loaded_under_two_names() -> None:
    code = """
import sys
import flows.build, pipelines.errors, schemas, datacards.card
import routeyard.flows.build, routeyard.pipelines.errors, routeyard.schemas
import routeyard.datacards.card
assert flows.build is routeyard.flows.build
assert pipelines.errors.BadInput is routeyard.pipelines.errors.BadInput
by_file = {}
for module in set(sys.modules.values()):
    if getattr(module, "__file__", None):
        by_file.setdefault(module.__file__, set()).add(id(module))
doubled = {file for file, modules in by_file.items() if len(modules) > 1}
names = {m.__name__ for m in set(sys.modules.values()) if getattr(m, "__file__", "")}
ours = ("schemas", "pipelines", "papers", "flows", "datacards")
bare = {n for n in names if n.partition(".")[0] in ours}
sys.exit(repr((doubled, bare)) if doubled or bare else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("entrypoint", ["flows.build:build", "routeyard.flows.build:build"])
def test_entry_points_of_deployments_load(entrypoint: str) -> None:
    # Deployments made before the packages had their prefix name `flows.build:build`.
    code = (
        "from prefect.flows import load_flow_from_entrypoint; "
        f"flow = load_flow_from_entrypoint({entrypoint!r}); "
        "import routeyard.flows.build; assert flow is routeyard.flows.build.build"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
