"""A scorer that another package registers works everywhere ours do."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.support.small_recorded import RECIPE

ROOT = Path(__file__).parents[2]
ROMAN = '''
"""`roman`: a Roman numeral against a Roman numeral or a number."""
import re
from routeyard import ScoreResult, Scorer

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}

def value(text):
    text = text.strip().upper()
    if text.isdigit():
        return int(text)
    digits = [VALUES.get(letter) for letter in text]
    if not digits or None in digits:
        return None
    return sum(-a if a < b else a for a, b in zip(digits, digits[1:] + [0]))

def read(asked, output):
    found = list(re.finditer(r"\\b[IVXLC]+\\b", output))
    if not found:
        return ScoreResult("abstain", reason="no Roman numeral")
    said = found[-1]
    right = value(said[0]) in {value(one) for one in asked.references}
    return ScoreResult("correct" if right else "incorrect", float(right), said[0], said.span(), "")

SCORER = Scorer(
    "roman", "1", read,
    instruction="End with one Roman numeral.",
    escalate_on="not_correct", symmetric=True, canonical=value, states="{}",
)
'''


def install(folder: Path, version: str = "1") -> None:
    """What pip leaves behind: a module and its metadata with the entry point."""
    (folder / "roman.py").write_text(ROMAN.replace('"roman", "1"', f'"roman", "{version}"'))
    about = folder / "roman-1.0.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: roman\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[routeyard.scorers]\nroman = roman:SCORER\n")


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(warm_python: list[str]) -> Run:
    """Runs Python where the package is installed."""

    def run(site: Path, *words: object) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
        command = [*warm_python, *map(str, words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_a_scorer_of_another_package_works_everywhere(tmp_path: Path, run: Run) -> None:
    site, yard = tmp_path / "site", tmp_path / "yard"
    site.mkdir()
    install(site)
    rows = [{"id": str(n), "question": f"{n} in Roman?", "answer": str(n)} for n in (4, 9, 14)]
    said = [("good", "It is IV."), ("good", "IX"), ("good", "XIV"), ("bad", "VI"), ("bad", "?")]
    answers = [
        {"id": rows[i % 3]["id"], "model": model, "output": text}
        for i, (model, text) in enumerate(said)
    ]
    for name, content in (("questions", rows), ("answers", answers)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in content))
    source = RECIPE["sources"][0] | {"scorer": "roman"}
    recipe = RECIPE | {
        "sources": [source],
        "pool": {"models": [{"model_id": "good"}, {"model_id": "bad"}]},
    }
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe))

    build = ("-m", "routeyard", "build", path, "--workspace", yard, "--until", "label", "--json")
    stages = json.loads(run(site, *build).stdout)["stages"]
    assert stages["label"]["figures"]["labels"] == 5
    ask = f"""
import json, pyarrow.parquet as pq
from pathlib import Path
yard = Path({str(yard)!r})
labels = pq.read_table(next(yard.glob("stages/label/*/labels.parquet"))).to_pylist()
prompts = pq.read_table(next(yard.glob("stages/ingest/*/queries.parquet")))["prompt"].to_pylist()
from routeyard.pipelines.curate.entailment import scorer_equivalence
from routeyard.pipelines.label.policies import escalates_on
from routeyard.pipelines.curate.entailment import Pair
backend = scorer_equivalence()
print(json.dumps({{
    "right": sorted(r["model_id"] for r in labels if r["correct"]),
    "by": sorted({{r["decided_by"] for r in labels}}),
    "prompts": prompts,
    "same": backend.entails([Pair("q", "IX", other, "roman", ()) for other in ("IX", "X")]),
    "canonical": backend.canonical("roman", "XIV"),
    "escalates": escalates_on("roman"),
}}))
"""
    found = json.loads(run(site, "-c", ask).stdout)
    assert found["right"] == ["good", "good", "good"]
    assert found["by"] == ["roman", "unreadable"]
    assert all(text.endswith("End with one Roman numeral.") for text in found["prompts"])
    assert found["same"] == [True, False]
    assert found["canonical"] == 14
    assert found["escalates"] == "not_correct"
    reading = (
        "-m",
        "routeyard",
        "score",
        "--scorer",
        "roman",
        "--reference",
        "9",
        "--output",
        "IX",
    )
    assert json.loads(run(site, *reading).stdout)["outcome"] == "correct"

    # Another version of it files its verdicts anew, and nothing else is made again.
    install(site, version="2")
    again = json.loads(run(site, *build).stdout)["stages"]
    assert again["ingest"]["reused"]
    assert again["collect"]["reused"]
    assert not again["label"]["reused"]
