"""A benchmark collected in rounds: fewer calls, both estimates, nothing asked twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from routeyard.flows.build import run_build
from routeyard.flows.demo.answers import write
from routeyard.flows.demo.server import running
from routeyard.flows.plan import plan_build
from tests.flows.test_sharing import RECIPE, counts_of

ROUNDS = """
    - {model_id: sim-atlas-xl, provider: demo}
collect:
  strategy: informative
  informative: {resolve: 0.15, pilot: 40}
release:
  waivers:
    - {gate: metering, reason: prices are not stated here}
"""


def answered(url: str) -> int:
    return sum(n for model in counts_of(url)["answered"].values() for n in model.values())


def test_rounds_ask_less_release_both_estimates_and_ask_nothing_again(tmp_path: Path) -> None:
    bank, yard = write(tmp_path / "bank.jsonl"), tmp_path / "yard"
    recipe = tmp_path / "shared.yaml"
    with running() as url:
        text = RECIPE.format(bank=bank, url=url).replace("1800", "100000").rstrip()
        recipe.write_text(text + ROUNDS)
        planned = plan_build(recipe, yard)
        assert any("the most" in note for note in planned["notes"])
        made = run_build(recipe, yard)
        calls = answered(url)
        assert 0 < calls < planned["calls"]
        again = run_build(recipe, yard, shards=2)
        assert answered(url) == calls
    assert again["release"]["status"] == "unchanged"
    release = Path(made["release"]["path"])
    found: dict[str, Any] = json.loads((release / "manifest.json").read_text())["figures"]
    said = found["collect"]["informative"]
    assert said["asked"] == calls
    for row in said["models"]:
        assert row["low"] <= row["weighted"] <= row["high"]
        assert abs(row["plain"] - row["weighted"]) < 0.3
    card = (release / "README.md").read_text()
    assert "What was asked, and what it says of all questions" in card
    assert f"{said['asked']:,} of {said['pairs']:,} pairs" in card
