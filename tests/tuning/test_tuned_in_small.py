"""A paper's tables of trained encoders where no release is named: the same cells, in small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from routeyard.papers import PAPERS
from routeyard.papers import reproduction as tuning
from routeyard.papers.paper import SmallTuning
from routeyard.papers.reproduction import reproduction, stands_of
from routeyard.pipelines.common import encoders


def test_tables_of_trained_encoders_are_there_in_kind(
    release: Path, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "TUNING_ENCODER", str(tiny))
    small = SmallTuning(routers=("mlp",), layers=1, rows=(30, 60), tokens=32)
    paper = PAPERS.get("routing_plateau")
    items = {name: paper.items[name] for name in ("Table 6", "Table 13", "Figure 5")}
    wanted = ("Nine-by-30k", "EmbedLLM", "CARROT/SPROUT")
    instead = {"23,027": "30", "302,371": "60", "ModernBERT-base": "tiny-1-layers"}
    instead["ModernBERT-large"] = "tiny"
    benchmarks = {
        name: paper.benchmarks[name].model_copy(update={"instead": instead, "embed": False})
        for name in wanted
    }
    paper = replace(paper, items=items, benchmarks=benchmarks, zoo=False)
    stands = stands_of(paper, dict.fromkeys(wanted, release), [], tmp_path / "cache", 50)
    tuning.with_tuned(paper, small, stands, tmp_path / "tuned", tmp_path / "cache")
    found = reproduction(paper, stands)
    assert all(item.made and not item.missing for item in found.items)
    values = {(one.item, one.row, one.column): one for one in found.cells}
    # Every cell has a value of its own place, and none counts as the paper's.
    assert all(one.value is not None for one in found.cells)
    assert {one.verdict for one in found.cells} == {"not comparable"}
    last = values["Table 6", "300k, FT, mbl", "Mean acc"]
    assert "60 in the place of 302,371" in last.reason
    assert "tiny in the place of ModernBERT-large" in last.reason
    places = sorted(path.parent.name for path in (tmp_path / "tuned").rglob("run.json"))
    assert len([name for name in places if "tiny-1-layers" in name]) == len(places) / 2 == 6
    cut = encoders.loaded(str(tmp_path / "cache" / "encoders" / "tiny-1-layers"))
    assert len(cut[0].auto_model.encoder.layer) == 1
