"""Two builds in one workspace: neither fails, and each stage is made once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TIMES = 20
#: Builds in one workspace after the other, each when the other process is there too. A look at a
#: stage that finds nothing is followed by a pause, in which the other one may finish that stage.
BUILDS = """
import io, json, random, sys, time
from pathlib import Path
import routeyard

recipe, folder, times, name = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
plain, chance = io.open, random.Random(name)

def slow(file, *more, **how):
    try:
        return plain(file, *more, **how)
    except FileNotFoundError:
        if "stages" in str(file):
            time.sleep(chance.random() * 0.03)
        raise

io.open = slow
for number in range(times):
    yard = folder / str(number)
    (yard / name).mkdir(parents=True)
    while len(list(yard.glob("[ab]"))) < 2:
        time.sleep(0.001)
    try:
        stages = routeyard.build(recipe, yard, jobs=1, until="collect")["stages"]
        said = {stage: one["reused"] for stage, one in stages.items()}
    except Exception as error:
        said = {"failed": repr(error)}
    print(json.dumps(said), flush=True)
"""
RECIPE = """
name: sums
version: 1.0.0
sources:
- {name: sums, path: questions.jsonl, scorer: numeric, task: sums,
   fields: {id: id, question: question, references: answer}}
pool: {models: [{model_id: careful}]}
collect:
  provider: recorded
  recorded: [{path: answers.jsonl, fields: {query: id, model: model, text: text}}]
"""


def started(folder: Path, times: int, *names: str) -> list[subprocess.Popen[str]]:
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE)
    questions = [{"id": str(n), "question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(4)]
    answers = [{"id": str(n), "model": "careful", "text": f"Answer: {2 * n}"} for n in range(4)]
    for name, rows in (("questions", questions), ("answers", answers)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines)
    return [
        subprocess.Popen(
            [sys.executable, "-c", BUILDS, str(recipe), str(folder / "yards"), str(times), name],
            env=os.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """What each of two processes says of its builds: stage → whether it was reused."""
    both = started(tmp_path_factory.mktemp("two"), TIMES, "a", "b")
    ended = [one.communicate(timeout=100) for one in both]
    return [[json.loads(line) for line in out.splitlines()] for out, _ in ended]


def test_no_build_fails_while_another_finishes_its_stages(builds) -> None:
    assert [len(made) for made in builds] == [TIMES, TIMES]
    assert [one["failed"] for made in builds for one in made if "failed" in one] == []


def test_nothing_is_made_twice(builds) -> None:
    for one, other in zip(*builds, strict=True):
        assert {stage: one[stage] + other[stage] for stage in one} == {
            "ingest": 1, "pool": 1, "collect": 1,
        }  # fmt: skip
