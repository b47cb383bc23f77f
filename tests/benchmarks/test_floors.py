"""The table of what users wait for: every row can be run, and floors are real scripts."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks.floors import floor
from benchmarks.floors.run import WORKS, page, run


def asked(only: str, folder: Path) -> argparse.Namespace:
    return argparse.Namespace(only=only, folder=folder, write=False)


def test_every_floor_is_a_function_or_a_figure_of_the_same_run() -> None:
    for work in WORKS:
        name = work.get("floor")
        if isinstance(name, str):
            assert name.startswith("calls_") or callable(getattr(floor, name)), work
        else:
            assert name == 0 or work["floor_key"], work


def test_a_row_is_measured_with_its_floor(tmp_path: Path) -> None:
    (row,) = run(asked("import_prefect", tmp_path))["rows"]
    assert (row["now"], row["reached"]) == (0.0, True)


def test_recordings_that_are_absent_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROUTEYARD_DATA", raising=False)
    (row,) = run(asked("build_mmlu_pro", tmp_path))["rows"]
    assert row["absent"] == "ROUTEYARD_DATA names no folder"


def test_a_row_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no row demos; there are build_mmlu_pro"):
        run(asked("demos", tmp_path))


def test_the_page_has_a_row_for_each_work_and_says_what_was_not_run() -> None:
    timed = {"work": "verify", "goal": 8, "now": 10.24, "floor": 0.471, "ratio": 21.74}
    written = page(
        [
            {**timed, "goal_is": "absolute", "reached": False},
            {"work": "demo", "goal": 20, "absent": "ROUTEYARD_DATA names no folder"},
        ]
    )
    assert "| verify | 10.2 | 0.471 | 21.7 | 8 | not reached |" in written
    assert "| demo | – | – | – | 20 | ROUTEYARD_DATA names no folder |" in written
