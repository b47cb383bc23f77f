"""From other people's data to an answered question: the three commands of the README."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from routeyard.flows.cli import run


def test_import_build_query(tmp_path: Path, capsys):
    source = tmp_path / "responses"
    source.mkdir()
    for subject in ("astronomy", "law"):
        with (source / f"mmlu_{subject}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(
                ["prompt", "gpt-4-1106-preview", "mistralai/Mixtral-8x7B-Instruct-v0.1"]
            )
            writer.writerows(
                [f"{subject}: what is {i} times {i}?\nAnswer:", i % 4 != 0, i % 3 == 0]
                for i in range(24)
            )
    yard = str(tmp_path / "yard")
    assert run(["import", "routellm", str(source), "--workspace", yard]) == 0
    assert run(["build", f"{yard}/imports/routellm/recipe.yaml", "--workspace", yard]) == 0
    capsys.readouterr()
    release = f"{yard}/releases/routellm/1.0.0"
    assert run(["query", release, "@oracle", "--format", "json"]) == 0
    answer = {row["task"]: row for row in json.loads(capsys.readouterr().out)}
    # 18 of 24 are right for the strong model; the weak one saves 2 of the other 6.
    assert answer["law"]["best_single"] == 0.75
    assert answer["law"]["oracle"] == (18 + 2) / 24
    assert answer["law"]["best_model"] == "gpt-4-1106-preview"
    assert run(["verify", release]) == 0
