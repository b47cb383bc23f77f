"""A newcomer's own CSV becomes a source in under ten lines, with what the docs say and no more."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
import yaml

from routeyard.flows.cli import run

README = Path(__file__).parents[2] / "pipelines" / "ingest" / "catalog" / "README.md"
#: What any recipe needs besides its sources; the docs of `init` write it.
REST = """
name: own
version: 1.0.0
pool:
  providers: [{name: p, base_url: "http://127.0.0.1:9/v1"}]
  models: [{model_id: m}]
"""


def block() -> str:
    """The first block under "Your own source"."""
    found = re.search(
        r"## Your own source.*?```yaml\n(.*?)```", README.read_text(encoding="utf-8"), re.S
    )
    assert found
    return found[1]


def test_the_block_of_the_docs_makes_a_csv_a_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = block()
    assert len(written.strip().splitlines()) < 10
    with (tmp_path / "mine.csv").open("w", newline="", encoding="utf-8") as stream:
        rows = [["question", "answer"], ["Who wrote Emma?", "Jane Austen"], ["2, 3, …?", "5"]]
        csv.writer(stream).writerows(rows)
    recipe = tmp_path / "own.yaml"
    recipe.write_text(REST + written, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(["recipe", "check", str(recipe)]) == 0
    capsys.readouterr()
    assert run(["plan", str(recipe), "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["queries_per_source"] == {"mine": 2}


def test_multiple_choice_as_the_docs_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = README.read_text(encoding="utf-8")
    choices = re.search(r"`choices: (\[.*?\])`", said)
    assert choices
    source = yaml.safe_load(block())["sources"][0] | {"scorer": "mcq"}
    source["fields"]["choices"] = yaml.safe_load(choices[1])
    (tmp_path / "mine.csv").write_text(
        "question,option_a,option_b,answer\nWhich is prime?,4,5,B\n", encoding="utf-8"
    )
    recipe = tmp_path / "own.yaml"
    recipe.write_text(REST + yaml.safe_dump({"sources": [source]}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(["plan", str(recipe), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queries_per_source"] == {"mine": 1}
