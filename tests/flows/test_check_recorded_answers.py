"""`recipe check` reads recorded answers as a build would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.cli import run
from routeyard.flows.recipe_check import faults
from tests.support.small_recorded import RECIPE, write


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


def test_independent_faults_of_sources_recordings_and_pool_are_said_at_once(
    tmp_path: Path,
) -> None:
    # Path, column, models, prices and source: each took a run of its own.
    (entry,) = RECIPE["collect"]["recorded"]
    (source,) = RECIPE["sources"]
    (tmp_path / "more.jsonl").write_text(
        "".join(json.dumps({"id": str(i), "model": m, "output": "1"}) + "\n"
                for i, m in enumerate(["big", "hasty", "small"]))
    )  # fmt: skip
    recorded = [
        {**entry, "path": "nowhere.jsonl", "fields": fields()},
        {**entry, "fields": fields(text="outptu", prompt_tokens="tokns")},
        {**entry, "path": "more.jsonl", "fields": fields()},
    ]
    plain = json.loads(json.dumps(source))  # no YAML alias
    second = {**plain, "name": "other", "fields": {**plain["fields"], "question": "qestion"}}
    change: dict[str, Any] = {"collect": {"provider": "recorded", "recorded": recorded}}
    told = "\n".join(map(str, faults(str(write(tmp_path, **change)))))
    for part in ("no file", "'outptu'", "'tokns'", "models 'big', 'small' have responses"):
        assert part in told, part
    # The recordings are looked at although source and pool are wrong as well.
    priced = {"models": [{"model_id": "hasty", "price_in": 1.0}, {"model_id": "careful"}]}
    change |= {"sources": [source, second], "pool": priced}
    told = "\n".join(map(str, faults(str(write(tmp_path, **change)))))
    for part in ("no file", "'outptu'", "'tokns'", "'qestion'", "no 'price_date'"):
        assert part in told, part


def test_a_files_own_names_of_models_are_translated_as_the_step_says(tmp_path: Path) -> None:
    pool = {"models": [{"model_id": "careful"}, {"model_id": "hasty-2"}]}
    (found,) = faults(str(write(tmp_path, pool=pool)))
    said = found.next.partition("fields.model: ")[2].partition("; or set")[0]
    renamed = json.loads(said).replace("…", "hasty-2")
    assert (
        faults(str(write(tmp_path, pool=pool, collect=recorded(fields=fields(model=renamed)))))
        == []
    )
