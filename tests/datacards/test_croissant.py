from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest


def _dataset(path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries it imports
        import mlcroissant

        return mlcroissant.Dataset(jsonld=path)


@pytest.mark.filterwarnings("ignore")
def test_croissant_validates_and_its_records_load(release):
    dataset = _dataset(release / "croissant.json")
    assert dataset.metadata.ctx.issues.errors == set()
    assert dataset.metadata.ctx.issues.warnings == set()
    # The library drops properties it has no name for.
    told = json.loads((release / "croissant.json").read_text())
    known = {key for key in dataset.metadata.to_json() if key.startswith("rai:")}
    assert known == {key for key in told if key.startswith("rai:")}
    # `validate` does not notice a missing name or a wrong checksum: loading does.
    rows = list(dataset.records("labels"))
    assert len(rows) == 17
    assert {row["labels/model_id"] for row in rows} == {b"m0", b"m1", b"m2"}
    questions = list(dataset.records("queries"))
    assert len(questions) == 6


def test_checksums_are_those_of_the_files(release):
    said = json.loads((release / "croissant.json").read_text())
    manifest = json.loads((release / "manifest.json").read_text())
    for entry in said["distribution"]:
        assert manifest["files"][entry["contentUrl"]]["sha256"] == entry["sha256"]
    fields = {f["@id"] for s in said["recordSet"] for f in s["field"]}
    assert {"labels/score", "responses/cost_usd", "queries/references"} <= fields
    # Units reach the reader.
    texts = [f["description"] for s in said["recordSet"] for f in s["field"]]
    assert any("[USD]" in text for text in texts)


def test_it_says_how_it_was_made_from_what_the_release_knows(release):
    said = json.loads((release / "croissant.json").read_text())
    told = {key: value for key, value in said.items() if key.startswith("rai:")}
    assert len(told) >= 10
    assert all(told.values())
    assert "17 labels" in told["rai:dataCollectionMissingData"]
    assert said["rai:machineAnnotationTools"] == ["numeric: 17 labels"]
    assert said["datePublished"] == "2026-01-01", "the day of the newest answer, never a clock"
    assert said["citeAs"].startswith("@")
