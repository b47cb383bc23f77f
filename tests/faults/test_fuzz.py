"""Damaged inputs for every importer, the recipe reader, every scorer and the manifest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import run_import
from routeyard.pipelines.label.scorers import SCORERS
from tests.faults.attacks import Row
from tests.ingest.importers import made
from tests.ingest.importers import test_importers as layouts
from tests.ingest.importers import test_swe_agents as swe_agents
from tests.ingest.importers import test_trajectories as trajectories
from tests.ingest.importers.made import write_case

Rows = Callable[[str], Row]
Size = Callable[[int, int], int]
#: Importer → what writes a small source in its true layout.
LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "routellm": layouts.routellm,
    "routerbench": lambda folder: layouts.bench(folder / "routerbench_0shot.pkl"),
    "routereval": layouts.routereval,
} | {
    case["importer"]: partial(write_case, name)
    for name, case in made.LAYOUTS["cases"].items()
    if "left_out" in case or case["importer"] not in ("helm", "inspect")
}
LAYOUTS["inspect"] = partial(write_case, "inspect, a log as a zip")
#: Importer → the test that writes one and imports it.
WRITTEN_BY: dict[str, Callable[[Path], None]] = {
    "mini_swe_agent": swe_agents.test_mini_swe_agent_with_the_harness_report,
    "mint": trajectories.test_mint,
    "openhands": swe_agents.test_openhands,
    "otel": trajectories.test_opentelemetry,
    "tau_bench": trajectories.test_tau_bench,
    "twin_router_bench": trajectories.test_twin_router_bench,
}


def fuzz(reader: str, count: int, folder: Path, found: Row) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            str(Path(__file__).with_name("fuzzing.py")),
            reader,
            str(count),
            str(folder),
        ],
        capture_output=True,
        text=True,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    found.tried += count
    # A process that crashed says nothing last.
    assert done.returncode == 0, (said[-3:], done.stderr[-2000:])
    *faults, told = said
    found.held += told["held"]
    assert faults == [], (len(faults), faults[:10])
    # Both ends are reached: what is always refused was never read.
    assert told["read"] > 0, told


def test_every_reader_is_fuzzed() -> None:
    assert {*LAYOUTS, *WRITTEN_BY} == set(IMPORTERS.builtin)


@pytest.mark.parametrize("name", sorted({*LAYOUTS, *WRITTEN_BY}))
def test_importers(
    name: str,
    tmp_path: Path,
    row: Rows,
    size: Size,
    full: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not full and name != "inspect":
        pytest.skip("in the full suite; one stands for the others here")
    source = tmp_path / "source"
    source.mkdir()
    taken: list[Path] = []

    def spy(importer: Any, path: Path, target: Path) -> Any:
        if importer.name == name and not taken:
            taken.append(path)
        return run_import(importer, path, target)

    if name in LAYOUTS:
        taken.append(LAYOUTS[name](source))
    else:
        test = WRITTEN_BY[name]
        monkeypatch.setitem(test.__globals__, "run_import", spy)
        test(source)
    # What the test imported beside its source is no part of it.
    for beside in ("yard", "other", "imports"):
        subprocess.run(["rm", "-rf", str(source / beside)], check=True)
    (source / ".path").write_text(str(taken[0].relative_to(source)))
    fuzz(f"importer:{name}", size(60, 10_000), source, row("fuzzed importers"))


@pytest.mark.parametrize("name", sorted(SCORERS.builtin))
def test_scorers(name: str, tmp_path: Path, row: Rows, size: Size, full: bool) -> None:
    if not full:
        pytest.skip("in the full suite; tests/scorers tries odd texts in every run")
    fuzz(f"scorer:{name}", size(1, 10_000), tmp_path, row("fuzzed scorers"))


def test_recipes(tmp_path: Path, row: Rows, size: Size) -> None:
    fuzz("recipe", size(100, 10_000), tmp_path, row("fuzzed recipes"))


def test_manifests(tmp_path: Path, row: Rows, size: Size, full: bool) -> None:
    if not full:
        pytest.skip("in the full suite; test_releases.py damages manifests in every run")
    from routeyard.pipelines.release.build import write_release
    from tests.support import small_release as small

    release = write_release(
        small.tiny_tables(), recipe=small.RECIPE, root=tmp_path, render_card=lambda *a: "card"
    ).path
    fuzz("manifest", size(1, 10_000), release, row("fuzzed manifests"))
