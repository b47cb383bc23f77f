"""`datasets.load_dataset(release)` gives that release, whatever else one cache holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import routeyard

RECIPE: dict[str, Any] = {
    "name": "sums",
    "version": "1.0.0",
    "sources": [{
        "name": "sums", "path": "questions.jsonl", "scorer": "numeric", "task": "sums",
        "fields": {"id": "id", "question": "question", "references": "answer"},
    }],
    "pool": {"models": [{"model_id": "careful"}, {"model_id": "hasty"}]},
    "collect": {"provider": "recorded", "recorded": [{
        "path": "answers.jsonl",
        "fields": {"query": "id", "model": "model", "text": "text", "latency_s": "latency_s"},
    }]},
    "release": {"waivers": [{"gate": "metering", "reason": "recorded without usage"}]},
}  # fmt: skip
#: Reads tables of releases in one process with one cache.
READ = """
import json, sys, datasets
for place in sys.argv[1:]:
    data = datasets.load_dataset(*place.split("="))
    print(json.dumps([row for part in data.values() for row in part], default=str))
"""


def release(folder: Path, wrong: int = 0, latency: float = 1.0, **changes: Any) -> Path:
    """A release of twelve sums in a workspace of its own; `hasty` gets the first `wrong` wrong."""
    folder.mkdir()
    questions = [{"id": str(n), "question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(12)]
    answers = [
        {
            "id": str(n), "model": model, "latency_s": latency + n,
            "text": f"The answer is {2 * n + (model == 'hasty' and n < wrong)}.",
        }
        for model in ("careful", "hasty")
        for n in range(12)
    ]  # fmt: skip
    for name, rows in (("questions", questions), ("answers", answers)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines)
    recipe = folder / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({**RECIPE, **changes}))
    made = routeyard.build(recipe, folder / "yard", jobs=1)
    return Path(made["release"]["path"])


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[list[dict[str, Any]]], Path]:
    """Tables as they were read one after the other, and the cache."""
    folder = tmp_path_factory.mktemp("releases")
    first = release(folder / "first")
    copy = folder / "copy" / first.name
    shutil.copytree(first, copy)
    read = [
        (first, "outcomes"),
        (release(folder / "one label", wrong=1), "outcomes"),
        (release(folder / "name", wrong=5, name="totals"), "outcomes"),
        (first, "outcomes"),
        (first, "responses"),
        (release(folder / "again", latency=50.0), "responses"),
        (first, "models"),
        (copy, "models"),
    ]
    home = folder / "home"
    done = subprocess.run(
        [sys.executable, "-c", READ, *(f"{place}={table}" for place, table in read)],
        env={**os.environ, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], home


def test_each_release_in_one_cache_is_itself(loaded: Any) -> None:
    rights = [sum(row["score"] for row in rows) for rows in loaded[0][:4]]
    assert rights == [24, 23, 19, 24]  # of other labels: one label, another name, the first again


def test_a_rebuild_elsewhere_with_other_times_is_itself(loaded: Any) -> None:
    fastest = [min(row["latency_s"] for row in rows) for rows in loaded[0][4:6]]
    assert fastest == [1.0, 50.0]


def test_a_copy_of_a_release_is_read_from_the_cache(loaded: Any) -> None:
    # What tells releases apart is their content, not where they are stored.
    found, home = loaded
    assert found[6] == found[7]
    assert len({one.parent for one in home.rglob("*.arrow") if "models" in one.parts}) == 1
