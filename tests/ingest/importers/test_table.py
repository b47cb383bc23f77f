"""`import table` and `mapping:` of recordings: one set of words for columns of any name."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers.write import run_import
from routeyard.pipelines.ingest.mapping import parse_map, table_importer, with_fields
from routeyard.pipelines.ingest.results import ROLES
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe import Recorded
from tests.conftest import Call

ROWS = [
    {"case": f"c{n}", "engine": engine, "grade": (n + k) % 2, "asked": f"What is {n} + 1?",
     "took_ms": 1500, "cost_cents": 2, "suite": "sums"}
    for n in range(6) for k, engine in enumerate(("x1", "x2"))
]  # fmt: skip
SAID = "arm=engine,question=case,score=grade,prompt=asked,latency=took_ms,cost=cost_cents"


def written(folder: Path) -> Path:
    with (folder / "runs.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    return folder / "runs.csv"


def imported(path: Path, said: str) -> list[dict[str, object]]:
    done = run_import(table_importer(parse_map(said, ROLES)), path, path.parent / "yard")
    return pq.read_table(done.folder / "responses.parquet").to_pylist()


def test_a_table_is_imported_with_its_units(tmp_path: Path) -> None:
    answers = imported(written(tmp_path), SAID)
    assert len(answers) == 12
    first = answers[0]
    assert (first["query"], first["model"], first["score"]) == ("c0", "x1", 0.0)
    assert first["latency_s"] == 1.5
    assert first["cost_usd"] == pytest.approx(0.02)
    [question, *_] = pq.read_table(tmp_path / "yard" / "queries.parquet").to_pylist()
    assert (question["question"], question["task"]) == ("What is 0 + 1?", "answers")


def test_constants_expressions_and_repeats(tmp_path: Path) -> None:
    said = "arm==mine,question={{ case | upper }},score={{ 1 - (grade | int) }},suite=suite"
    answers = imported(written(tmp_path), said)
    assert [(a["query"], a["model"], a["sample"]) for a in answers[:2]] == [
        ("C0", "mine", 0), ("C0", "mine", 1),
    ]  # fmt: skip
    assert answers[0]["score"] == 1.0
    [question, *_] = pq.read_table(tmp_path / "yard" / "queries.parquet").to_pylist()
    assert question["question"] == "[question C0: its text is not in the file]"
    assert question["task"] == "sums"


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(SourceError, match="'grades' is missing") as caught:
        imported(path, "arm=engine,question=case,score=grades")
    assert "did you mean 'grade'" in str(caught.value.next_step)
    with pytest.raises(BadInput, match="expected the columns of the model"):
        table_importer({"arm": "engine", "score": "grade"})
    with pytest.raises(BadInput, match="has no 'models'"):
        table_importer({"arm": "a", "question": "q", "score": "s", "models": "a,b"})


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ('"wide" or 5" wide?', '"wide" or 5" wide?'),  # no quote encloses the field
        ('"one, ""two"",\tthree"', 'one, "two",\tthree'),  # one does
        ('A 5" screen?', 'A 5" screen?'),
    ],
)
def test_quotes_between_tabs(tmp_path: Path, asked: str, read: str) -> None:
    path = tmp_path / "t.tsv"
    path.write_text(f"case\tengine\tgrade\tasked\nc1\tx1\t1\t{asked}\n")
    imported(path, "arm=engine,question=case,score=grade,prompt=asked")
    [question] = pq.read_table(tmp_path / "yard" / "queries.parquet").to_pylist()
    assert question["question"] == read


def test_the_command_builds(tmp_path: Path, call: Call) -> None:
    path = written(tmp_path)
    done = call("import", "table", path, "--workspace", tmp_path / "yard", "--map", SAID)
    assert "6 questions, 2 models, 12 answers" in done.stdout, done.stderr
    recipe = tmp_path / "yard/imports/table/recipe.yaml"
    done = call("recipe", "check", recipe)
    assert done.returncode == 0, done.stdout + done.stderr
    refused = call("import", "table", path, "--workspace", tmp_path / "yard")
    assert refused.returncode == 2
    assert "--map arm=COLUMN" in refused.stderr


def test_a_recording_takes_the_same_words() -> None:
    said = {"arm": "engine", "question": "case", "latency": "took_ms", "cost": "usage.cost",
            "text": "=yes"}  # fmt: skip
    fields = with_fields(Recorded(path="a.csv", mapping=said)).fields  # type: ignore[arg-type]
    assert (fields.model, fields.query, fields.cost_usd) == ("engine", "case", "usage.cost")
    assert fields.text == "{{ 'yes' }}"
    assert "| float * 0.001" in str(fields.latency_s)
    for wrong in ({}, {"mapping": {"arm": "a"}}, {"mapping": {"arm": "a", "cases": "b"}}):
        with pytest.raises(ValueError, match=r"expected|should be"):
            Recorded(path="a.csv", **wrong)
