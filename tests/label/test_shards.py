"""Workers: same verdicts for any number of processes, and a crash costs one row."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from routeyard.pipelines.label.rules import QUESTION, Shard, read_all
from routeyard.schemas import QUERIES

ROOT = Path(__file__).parents[2]
PLUGIN = """
import os
from routeyard.pipelines.label.scorers.scorer import ScoreResult, Scorer

def read(asked, output):
    if output == "die":
        os._exit(7)
    return ScoreResult("correct", 1.0, output)

SCORER = Scorer("deadly", "1", read)
"""

QUESTIONS = pa.schema([QUERIES.schema.field(name) for name in QUESTION])
ROWS = pa.schema(
    [
        ("question", pa.int64()), ("text", pa.string()), ("status", pa.string()),
        ("graded_against", pa.list_(pa.string())),
    ]
)  # fmt: skip


def shard(*texts: str, scorer: str = "numeric") -> Shard:
    question = {"question": "?", "references": ["7"], "choices": [], "metadata": "{}"}
    rows = {"question": [0] * len(texts), "text": texts, "status": ["ok"] * len(texts)}
    return Shard(
        pa.Table.from_pylist([question | {"scorer": scorer}]),
        pa.table(rows | {"graded_against": pa.nulls(len(texts))}),
    )


def test_two_processes_say_what_one_says_in_the_same_order() -> None:
    shards = [shard("The answer is 7.", "The answer is 8."), shard("dunno"), shard("7")]
    assert list(read_all(shards, jobs=2)) == list(read_all(shards, jobs=1))


def test_a_shard_in_which_every_answer_is_a_letter_is_read() -> None:
    """An empty list of rows has no type, and the whole stage stopped."""
    texts = ["It is the second one.\nThe answer is (B).", "The first.\nThe answer is (A)."]
    question = {"question": "?", "references": ["B"], "choices": ["x", "y"], "metadata": "{}"}
    asked = pa.Table.from_pylist([{**question, "scorer": "mcq"}], QUESTIONS)
    given = {"question": 0, "status": "ok", "graded_against": None}
    rows = pa.Table.from_pylist([{**given, "text": text} for text in texts], ROWS)
    assert [row[0] for _, read in read_all([Shard(asked, rows)]) for row in read] == [
        "correct", "incorrect",
    ]  # fmt: skip


def test_a_scorer_that_kills_its_process_costs_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An installed third-party scorer, as the workers would find it.
    (tmp_path / "deadly.py").write_text(PLUGIN)
    installed = tmp_path / "deadly-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[routeyard.scorers]\ndeadly = deadly:SCORER\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    shards = [shard("7"), shard("a", "die", "b", scorer="deadly"), shard("7"), shard("8")]
    read = [[row[0] for row in rows] for _, rows in read_all(shards, jobs=2)]
    assert read == [["correct"], ["correct", "error", "correct"], ["correct"], ["incorrect"]]


HALF_READ = """
import sys
import psutil
from tests.label.test_shards import shard
from routeyard.pipelines.label.rules import read_all
read = read_all([shard("7")] * 200, jobs=2)
next(read)
started = []
while len(started) < 4:  # what tracks resources, what forks, and two workers
    started = psutil.Process().children(recursive=True)
print(*(child.pid for child in started), flush=True)
sys.stdin.read()
"""


def test_workers_end_with_the_process_that_is_killed() -> None:
    """They stayed, 147 MB each, after a `kill -9`."""
    words = [sys.executable, "-c", HALF_READ]
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as build:
        assert build.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in build.stdout.readline().split()]
        assert len(workers) == 4
        build.kill()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert alive == []
