"""Which earlier output `status` compares a stale stage with, and how much it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routeyard.flows.build import _release, why_stale
from routeyard.flows.recipe import load
from routeyard.flows.workspace import CARD, RECORD, reached_code, sealed
from routeyard.pipelines.common.staging import write_json


def stored(workspace: Path, name: str, **made_of: Any) -> None:
    folder = workspace / "stages" / "collect" / name
    folder.mkdir(parents=True)
    record = {"stage": "collect", **made_of, "fingerprint": name, "figures": {}}
    write_json(folder / RECORD, sealed(folder, record))


def test_an_output_of_another_benchmark_is_no_reason(tmp_path: Path) -> None:
    # Fewer differences in all, but other parameters: another recipe's output.
    modules = {f"m{number}": "old" for number in range(9)}
    stored(tmp_path, "ours", parameters={"samples": 1}, inputs={"pool": "p"}, code=modules)
    new = dict.fromkeys(modules, "new")
    stored(tmp_path, "theirs", parameters={"samples": 3}, inputs={"pool": "x"}, code=new)
    now = {
        "stage": "collect", "parameters": {"samples": 1}, "inputs": {"pool": "p"}, "code": new,
    }  # fmt: skip
    why = why_stale(now, tmp_path)
    assert "parameter" not in why
    assert why.startswith("code 'm0' changed; code 'm1' changed; ")
    # An update of Routeyard changes hundreds of modules: the first few say it.
    assert why.endswith("; and 4 more modules")


def test_a_release_whose_card_would_be_written_otherwise_is_stale(tmp_path: Path) -> None:
    recipe = load("demo")[0]
    folder = tmp_path / "releases" / recipe.name / recipe.version
    write_json(folder / "manifest.json", {"stages": {"ingest": "a"}})
    now = {"ingest": "a"}
    assert _release(tmp_path, recipe, now, reached_code(CARD))["state"] == "fresh"
    assert _release(tmp_path, recipe, now, None)["state"] == "fresh"  # of an older version
    stale = _release(tmp_path, recipe, now, "of other templates")
    assert (stale["state"], "templates" in stale["why"]) == ("stale", True)
