"""`datasets.load_dataset(release)` gives that release, whatever else one cache holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from routeyard.schemas import CONTRACTS
from tests.support.small_release import sound, tiny_tables, write

__all__ = ["sound", "write"]

#: Reads tables of releases in one process with one cache.
READ = """
import json, sys, datasets
for place in sys.argv[1:]:
    data = datasets.load_dataset(*place.split("="))
    print(json.dumps([row for part in data.values() for row in part], default=str))
"""


def changed(table: Any, first: int, **values: Any) -> dict[str, Any]:
    """The first rows of a table have other values."""
    rows = table.to_pylist()
    for row in rows[:first]:
        row.update(values)
    return CONTRACTS["labels" if "score" in values else "responses"].from_rows(rows)


def test_each_release_in_one_cache_is_itself(sound: Path, write: Any, tmp_path: Path) -> None:
    tables = tiny_tables()
    wrong = {"score": 0.0, "correct": False}
    one_label = {**tables, "labels": changed(tables["labels"], 1, **wrong)}
    others = {**tables, "labels": changed(tables["labels"], 5, **wrong)}
    later = {**tables, "responses": changed(tables["responses"], 99, latency_s=50.0)}
    copy = tmp_path / "copy" / sound.name
    shutil.copytree(sound, copy)
    read = [
        (sound, "outcomes"),
        (write(one_label, root=tmp_path / "one label").path, "outcomes"),
        (write(others, root=tmp_path / "name", recipe={"name": "totals"}).path, "outcomes"),
        (sound, "outcomes"),
        (sound, "responses"),
        (write(later, root=tmp_path / "again").path, "responses"),
        (sound, "models"),
        (copy, "models"),
    ]
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", READ, *(f"{place}={table}" for place, table in read)],
        env={**os.environ, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    # Of other labels: one label, another name, the first again.
    assert [sum(row["score"] for row in rows) for rows in found[:4]] == [9, 8, 6, 9]
    # Made again elsewhere with other times.
    assert [min(row["latency_s"] for row in rows) for rows in found[4:6]] == [0.1, 50.0]
    # What tells releases apart is their content, not where they are stored.
    assert found[6] == found[7]
    assert len({one.parent for one in home.rglob("*.arrow") if "models" in one.parts}) == 1
