"""Damaged inputs for every importer, the recipe reader, every scorer and the manifest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.label.scorers import SCORERS
from tests.faults.attacks import Row
from tests.ingest.importers import test_importers as layouts
from tests.ingest.importers import test_layouts as other_layouts
from tests.ingest.importers import test_swe_agents as swe_agents
from tests.ingest.importers import test_trajectories as trajectories

Rows = Callable[[str], Row]
Size = Callable[[int, int], int]
#: Importer → the test that writes a small source in its true layout.
LAYOUTS: dict[str, Callable[..., None]] = {
    "alpaca_eval": layouts.test_alpaca_eval,
    "embedllm": layouts.test_embedllm_keeps_conflicting_repeats_as_samples,
    "helm": other_layouts.test_helm_takes_the_metric_and_not_the_request_that_succeeded,
    "inspect": layouts.test_inspect,
    "llmrouterbench": layouts.test_llmrouterbench_takes_identity_from_the_header,
    "lm_eval": layouts.test_lm_eval,
    "mint": trajectories.test_mint,
    "mixinstruct": layouts.test_mixinstruct,
    "mixinstruct_bartscore": layouts.test_mixinstruct,
    "mmlu_pro": layouts.test_mmlu_pro_respects_the_letter_a_run_was_graded_against,
    "otel": trajectories.test_opentelemetry,
    "routellm": layouts.test_routellm,
    "routerarena": layouts.test_routerarena,
    "routerbench": layouts.test_routerbench,
    "routereval": layouts.test_routereval,
    "sprout": layouts.test_sprout,
    "ulab": layouts.test_ulab_error_texts_are_missing_answers,
    "zeroeval": layouts.test_zeroeval,
    "mini_swe_agent": swe_agents.test_mini_swe_agent_with_the_harness_report,
    "openhands": swe_agents.test_openhands,
    "tau_bench": trajectories.test_tau_bench,
    "twin_router_bench": trajectories.test_twin_router_bench,
}
#: Its two forms take one more argument.
_MORE: dict[str, tuple[Any, ...]] = {"inspect": (".eval",), "routerbench": ("object",)}


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
    assert set(LAYOUTS) == set(IMPORTERS.builtin)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
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
    taken: list[Path] = []
    plain = layouts.run_import

    def spy(importer: Any, path: Path, target: Path) -> Any:
        if importer.name == name and not taken:
            taken.append(path)
        return plain(importer, path, target)

    monkeypatch.setitem(LAYOUTS[name].__globals__, "run_import", spy)
    source = tmp_path / "source"
    source.mkdir()
    LAYOUTS[name](source, *_MORE.get(name, ()))
    # What the test imported beside its source is no part of it.
    for made in ("yard", "other", "imports"):
        subprocess.run(["rm", "-rf", str(source / made)], check=True)
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
