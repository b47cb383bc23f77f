"""How many reworded questions keep their model, from two tables of choices."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from routeyard.flows.evaluation.released import robust
from routeyard.pipelines.common.errors import BadInput


def written(path: Path, rows: dict[str, str], second: str = "model_id") -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("query_id", second), *rows.items()])
    return path


def test_reworded_questions_that_keep_their_model(tmp_path: Path) -> None:
    full = written(tmp_path / "full.csv", {"1": "a", "2": "b", "03": "c", "4": "a"})
    other = written(tmp_path / "other.csv", {"1": "a", "2": "c", "03": "c", "9": "a"})
    found = robust(full, other)
    assert (found.name, found.level) == ("robustness", "ok")
    assert found.says == "66.7% of 3 reworded questions keep their model"


def test_tables_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    full = written(tmp_path / "full.csv", {"1": "a"})
    with pytest.raises(BadInput, match="no reworded question has the id"):
        robust(full, written(tmp_path / "other.csv", {"2": "a"}))
    with pytest.raises(BadInput, match="no column 'model_id'"):
        robust(full, written(tmp_path / "wrong.csv", {"1": "a"}, "chosen"))
