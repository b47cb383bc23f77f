"""`recipe check` reads recorded answers as a build would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flows.cli import run
from flows.recipe_check import faults
from tests.flows.small_recorded import RECIPE, write


def recorded(**change: Any) -> dict[str, Any]:
    (entry,) = RECIPE["collect"]["recorded"]
    return {"provider": "recorded", "recorded": [{**entry, **change}]}


def fields(**change: Any) -> dict[str, Any]:
    (entry,) = RECIPE["collect"]["recorded"]
    return {**entry["fields"], **change}


@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        ({"collect": recorded(path="nowhere.jsonl")}, ", path", "there is no file"),
        ({"collect": recorded(fields=fields(text="outptu"))}, "fields.text", "no column 'outptu'"),
        ({"collect": recorded(fields=fields(query="output"))}, "", "no row of answers.jsonl"),
        ({"pool": {"models": [{"model_id": "careful"}]}}, "", "'hasty' has responses but is not"),
        ({"release": {}}, "release", "the metering audit would stop this release: answers of"),
    ],
)
def test_what_would_stop_the_build_is_a_fault(
    tmp_path: Path, change: dict[str, Any], place: str, says: str
) -> None:
    found = faults(str(write(tmp_path, **change)))
    assert found, "a build stops here"
    assert place in found[0].place
    assert says in found[0].says


def test_a_good_recording_has_no_fault_and_its_notes_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = write(tmp_path)
    with (tmp_path / "answers.jsonl").open("a") as file:
        file.write(json.dumps({"id": "99", "model": "hasty", "output": "1"}) + "\n")
    assert run(["recipe", "check", str(recipe)]) == 0
    shown = capsys.readouterr().out
    assert "note: answers.jsonl: 1 rows are about questions that the recipe does not ask" in shown
    assert "rests on the ids alone" in shown
    assert "no fault" in shown
    # The build says the same.
    assert run(["build", str(recipe), "-w", str(tmp_path / "yard"), "--until", "collect"]) == 0
    assert "rests on the ids alone" in capsys.readouterr().err
