"""A raised scorer version through court, relabelling and release: what moved, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from routeyard.pipelines.label.policies import decide
from routeyard.pipelines.label.rules import file_verdicts, keep_others
from routeyard.pipelines.label.scorers import numeric
from routeyard.pipelines.label.scorers.scorer import ScoreResult, ScoringInput
from routeyard.pipelines.release.diff import diff_releases
from routeyard.schemas import QUERIES, RESPONSES


def _texts(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The small release with texts: odd questions are options, and m1 says 9 for 3."""
    asked = tables["queries"].to_pylist()
    numbers = {row["query_id"]: int(row["references"][0]) for row in asked}
    for row in asked:
        if row["task"] == "odd":
            row |= {"scorer": "mcq", "references": ["B"], "choices": ["no", "yes"]}
    options = {row["query_id"] for row in asked if row["scorer"] == "mcq"}
    said = tables["responses"].to_pylist()
    for row in said:
        number = numbers[row["query_id"]]
        if row["query_id"] in options:
            row["text"] = "The answer is (A)." if row["model_id"] == "m1" else "The answer is (B)."
        else:
            number = 9 if (row["model_id"], number) == ("m1", 3) else number
            row["text"] = f"The answer is {number}."
    return {**tables, "queries": QUERIES.from_rows(asked), "responses": RESPONSES.from_rows(said)}


def _labelled(tables: dict[str, pa.Table], verdicts: pa.Table) -> dict[str, pa.Table]:
    labels = decide(tables["queries"], tables["responses"], verdicts)
    return {**tables, "verdicts": verdicts, "labels": labels}


def test_a_raised_version_refiles_its_verdicts_only_and_diff_says_why(
    write: Any, tables: dict[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _texts(tables)
    stored = file_verdicts(asked["queries"], asked["responses"])
    first = write(_labelled(asked, stored)).path

    # the deliberate change: 9 is now taken for 3
    def lenient(about: ScoringInput, output: str) -> ScoreResult:
        return numeric.read(about, output.replace("9", "3"))

    before = numeric.SCORER.version
    monkeypatch.setattr(
        numeric, "SCORER", replace(numeric.SCORER, version=f"{before}0", read=lenient)
    )
    refiled = keep_others(stored, file_verdicts(asked["queries"], asked["responses"]))
    second = write(_labelled(asked, refiled), recipe={"version": "1.1.0"}).path

    def of(verdicts: pa.Table, scorer: str) -> list[dict[str, Any]]:
        rows = [row for row in verdicts.to_pylist() if row["scorer"] == scorer]
        return sorted(rows, key=lambda row: (row["query_id"], row["model_id"]))

    # another scorer's verdicts stand as they were filed
    assert of(refiled, "mcq") == of(stored, "mcq")
    assert {row["scorer_version"] for row in of(refiled, "numeric")} == {f"{before}0"}

    found = diff_releases(first, second)
    (moved,) = found.tables["labels"].to_pylist()
    assert (moved["model_id"], moved["change"]) == ("m1", "flipped")
    # every numeric verdict was filed anew, one with another outcome: that is why
    filed = found.tables["verdicts"].to_pylist()
    assert {row["scorer"] for row in filed} == {"numeric"}
    (reason,) = (row for row in filed if row["change"] == "other outcome")
    assert (reason["query_id"], reason["model_id"]) == (moved["query_id"], "m1")
    assert (reason["scorer"], reason["version_before"]) == ("numeric", before)
    assert reason["version_after"] == f"{before}0"
    assert (reason["outcome_before"], reason["outcome_after"]) == ("incorrect", "correct")
    assert reason["reason_before"].endswith("9")
    assert reason["reason_after"].endswith("3")
