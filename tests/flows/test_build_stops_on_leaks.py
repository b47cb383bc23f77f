"""A benchmark whose questions stand on both sides of a split is not built without a waiver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.flows import build
from routeyard.flows.label_audits import built
from routeyard.pipelines.common.errors import GateFailed
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.release.manifest import read_manifest
from tests.support import small_recorded

#: The source published a split, in which twins stand on both sides.
METERING = {"gate": "metering", "reason": "Recorded without usage or prices."}


def with_twins(folder: Path, **change: Any) -> Path:
    """The small benchmark; three questions are asked once more, in capitals, under another id."""
    path = small_recorded.write(folder, **change)
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    answers = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    twins = [
        {**row, "id": f"{row['id']}b", "question": row["question"].upper()} for row in rows[:3]
    ]
    for k, row in enumerate([*rows, *twins]):
        row["repo"] = f"repo {int(row['id'].rstrip('b')) // 3}"
        row["split"] = "test" if k < 6 else "train"
    answers += [{**one, "id": f"{one['id']}b"} for one in answers if int(one["id"]) < 3]
    for name, given in (("questions", [*rows, *twins]), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    return path


def made(recipe: Path, workspace: Path) -> dict[str, str]:
    """source_id → split."""
    build.build.fn(recipe=str(recipe), workspace=str(workspace), jobs=1, until="curate")
    folders = built("small", workspace).folders
    queries = pq.read_table(folders["ingest"] / "queries.parquet").to_pylist()
    named = {row["query_id"]: row["source_id"] for row in queries}
    splits = pq.read_table(folders["curate"] / "splits.parquet").to_pylist()
    return {named[row["query_id"]]: row["split"] for row in splits}


def released(recipe: Path, workspace: Path, until: str = "release") -> Path:
    """The release, or its place."""
    build.build.fn(recipe=str(recipe), workspace=str(workspace), jobs=1, until=until)
    return workspace / "releases/small/1.0.0"


def test_equal_words_stay_on_one_side(tmp_path: Path) -> None:
    found = made(with_twins(tmp_path / "in"), tmp_path / "yard")
    assert all(found[str(k)] == found[f"{k}b"] for k in range(3))


def test_a_group_stays_on_one_side(tmp_path: Path) -> None:
    path = with_twins(tmp_path / "in")
    recipe = yaml.safe_load(path.read_text())
    recipe["sources"][0]["fields"]["group"] = "repo"
    path.write_text(yaml.safe_dump(recipe))
    found = made(path, tmp_path / "yard")
    for start in range(0, 12, 3):
        assert len({found[str(k)] for k in range(start, start + 3)}) == 1


def test_what_the_recipe_leaves_apart_is_built(tmp_path: Path) -> None:
    split = {**small_recorded.RECIPE["split"], "keep_together": "group"}
    found = made(with_twins(tmp_path / "in", split=split), tmp_path / "yard")
    assert any(found[str(k)] != found[f"{k}b"] for k in range(3))


def test_a_published_split_that_leaks_is_reported_and_built(tmp_path: Path) -> None:
    path = with_twins(tmp_path / "in", curate=[{"rule": "upstream_split"}])
    recipe = yaml.safe_load(path.read_text())
    recipe["sources"][0]["fields"]["metadata"] = ["split"]
    path.write_text(yaml.safe_dump(recipe))
    manifest = read_manifest(released(path, tmp_path / "yard"))
    assert any("as its source published it" in one for one in manifest.figures["audit"]["defects"])


@pytest.mark.parametrize("gate", [None, "audit:leak", "audit"])
def test_a_rule_that_leaks_stops_the_build_unless_it_is_waived(
    tmp_path: Path, gate: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A rule of a third party splits question by question.
    monkeypatch.setitem(RULES.targets, "by_row", "tests.support.by_row:RULE")
    waivers = [METERING] + ([{"gate": gate, "reason": "The twins are known."}] if gate else [])
    path = with_twins(tmp_path / "in", curate=[{"rule": "by_row"}], release={"waivers": waivers})
    recipe = yaml.safe_load(path.read_text())
    recipe["sources"][0]["fields"]["metadata"] = ["split"]
    path.write_text(yaml.safe_dump(recipe))
    if gate is None:
        with pytest.raises(GateFailed, match=r"audit:leak: split 'upstream': 3 of 6 test"):
            released(path, tmp_path / "yard")
        assert not list((tmp_path / "yard").glob("releases/small/*"))
    elif gate == "audit":
        released(path, tmp_path / "yard", until="certify")
    else:
        release = released(path, tmp_path / "yard")
        assert "The twins are known." in (release / "README.md").read_text()
