"""Real folders: stray files are named and skipped, reruns keep the latest, damage still stops."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers import reading as spec
from routeyard.pipelines.ingest.importers.write import ImportReport, run_import


def _import(name: str, path: Path, tmp_path: Path) -> ImportReport:
    return run_import(IMPORTERS.get(name), path, tmp_path / "yard" / "imports" / name)


def _log(model: str, text: str, *, task: str = "sums", task_id: str = "t1") -> dict[str, Any]:
    sample = {"id": 1, "epoch": 1, "input": "1 + 1?", "target": "2", "scores": {}}
    sample["output"] = {"choices": [{"message": {"content": text}}], "model": model}
    spec = {"task": task, "model": model, "task_id": task_id}
    return {"version": 2, "status": "success", "eval": spec, "samples": [sample]}


def test_a_stray_file_is_named_and_skipped(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "2026-01-01T00-00-00_sums.json").write_text(json.dumps(_log("m", "2"), indent=2))
    (logs / "eval-set.json").write_text(json.dumps({"tasks": ["sums"]}))
    done = _import("inspect", logs, tmp_path)
    assert done.answers == 1
    assert done.left_out == {"files that are not of the format (eval-set.json)": 1}
    # And the card of the release says so.
    assert "eval-set.json" in done.recipe.read_text()


def test_a_rerun_of_a_log_keeps_the_latest_and_names_the_others(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for day, text, run in (("01", "3", "t1"), ("03", "2", "t3"), ("02", "4", "t2")):
        name = f"2026-01-{day}T00-00-00_sums.json"
        (logs / name).write_text(json.dumps(_log("m", text, task_id=run)))
    done = _import("inspect", logs, tmp_path)
    kept = pq.read_table(done.folder / "responses.parquet").column("text").to_pylist()
    assert kept == ["2"]
    (reason,) = done.left_out
    assert reason.startswith("older logs of the same task and model")
    assert "2026-01-01T00-00-00_sums.json" in reason
    assert "2026-01-02T00-00-00_sums.json" in reason


def test_strays_of_other_formats_too(tmp_path: Path) -> None:
    folder = tmp_path / "result_dirs" / "gsm"
    folder.mkdir(parents=True)
    rows = [{"id": "1", "question": "1 + 1?", "answer": "2", "output": ["Answer: 2"]}]
    (folder / "model.json").write_text(json.dumps(rows))
    (folder / "config.json").write_text(json.dumps({"temperature": 0}))
    done = _import("zeroeval", tmp_path / "result_dirs", tmp_path)
    assert done.answers == 1
    assert done.left_out == {"files that are not of the format (gsm/config.json)": 1}


def test_a_damaged_file_of_the_format_is_no_stray(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.json").write_text(json.dumps(_log("m", "2")))
    (logs / "b.json").write_text(json.dumps(_log("n", "2"))[:-30])
    with pytest.raises(SourceError, match="not JSON"):
        _import("inspect", logs, tmp_path)
    lacking = _log("n", "2")
    del lacking["eval"]
    (logs / "b.json").write_text(json.dumps(lacking))
    with pytest.raises(SourceError, match="'eval' is missing"):
        _import("inspect", logs, tmp_path)


def test_a_log_without_samples_does_not_refuse_the_others(tmp_path: Path) -> None:
    # One log of a folder that was cancelled before its first sample refused all of them.
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.json").write_text(json.dumps(_log("m", "2")))
    header = _log("n", "2")
    del header["samples"]
    (logs / "b.json").write_text(json.dumps({**header, "status": "cancelled"}))
    done = _import("inspect", logs, tmp_path)
    assert done.answers == 1
    assert done.left_out == {"logs without samples (b.json)": 1}
    said = yaml.safe_load(done.recipe.read_text(encoding="utf-8"))["release"]["known_issues"]
    assert any("b.json ended as 'cancelled'" in one for one in said)


def test_nothing_but_strays_is_said_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "notes.json").write_text("{}")
    with pytest.raises(SourceError, match=r"no answer.*notes\.json"):
        _import("inspect", tmp_path / "logs", tmp_path)


def test_an_error_in_an_importers_own_code_is_named_with_its_line(tmp_path: Path) -> None:
    """Trap: who writes an importer was told that the source is wrong, and not where it failed."""

    def read(paths: Any, result: Any) -> Any:
        yield spec.ImportedAnswer(question="a word that it does not take")  # type: ignore[call-arg]

    wrong = replace(IMPORTERS.get("ulab"), read=read)
    (tmp_path / "a.jsonl").write_text("{}")
    with pytest.raises(SourceError, match=r"test_strays\.py:\d+"):
        run_import(wrong, tmp_path / "a.jsonl", tmp_path / "yard")
