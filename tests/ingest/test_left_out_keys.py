"""JSON lines may leave keys out: missing where it can be, a clear error where it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.common.errors import RecipeError, SourceError
from routeyard.pipelines.ingest import ingest
from routeyard.schemas.recipe import Source

FULL = {"id": "a", "question": "2 + 2?", "answer": "4", "level": "low", "topic": "sums"}


def source(folder: Path, rows: list[dict[str, Any]], **changes: Any) -> Source:
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = {"name": "s", "path": "q.jsonl", "scorer": "numeric", "domain": "math"}
    said["fields"] = {"id": "id", "question": "question", "references": "answer", "domain": "topic"}
    return Source.model_validate(said | changes)


def without(key: str) -> dict[str, Any]:
    return {k: v for k, v in FULL.items() if k != key} | ({} if key == "id" else {"id": "b"})


def test_an_optional_key_is_missing_and_counted(tmp_path: Path) -> None:
    done = ingest([source(tmp_path, [FULL, without("topic")])], base=tmp_path)
    assert done.queries.column("domain").to_pylist() == ["sums", "math"]
    assert done.notes == (
        "source 's': columns that were not read: 'level'",
        "source 's': 1 of 2 rows have no key for fields.domain: taken as missing",
    )


@pytest.mark.parametrize("key", ["id", "question"])
def test_a_needed_key_is_asked_for_with_its_line(tmp_path: Path, key: str) -> None:
    with pytest.raises(RecipeError, match="what every row needs") as caught:
        ingest([source(tmp_path, [FULL, without(key)])], base=tmp_path)
    assert f"fields.{key}, line 2" in str(caught.value)


def test_a_missing_reference_is_said_or_left_out(tmp_path: Path) -> None:
    rows = [FULL, without("answer")]
    with pytest.raises(SourceError, match="without a reference"):
        ingest([source(tmp_path, rows)], base=tmp_path)
    done = ingest([source(tmp_path, rows, incomplete="remove")], base=tmp_path)
    assert done.queries.num_rows == 1


def test_a_missing_question_is_said_or_left_out(tmp_path: Path) -> None:
    rows = [FULL, {**FULL, "id": "empty", "question": " "}, {**without("question"), "id": "no key"}]
    with pytest.raises(SourceError, match="without a question") as caught:
        ingest([source(tmp_path, rows[:2])], base=tmp_path)
    assert "incomplete: remove" in str(caught.value)
    done = ingest([source(tmp_path, rows, incomplete="remove")], base=tmp_path)
    assert done.queries.num_rows == 1
    assert [(key, why) for key, why, _ in done.removed] == [
        ("s|empty", "no_question"),
        ("s|no key", "no_question"),
    ]


def test_an_empty_task_is_that_of_its_source(tmp_path: Path) -> None:
    rows = [{**FULL, "task": "algebra"}, {**FULL, "id": "other", "task": ""}]
    fields = {"id": "id", "question": "question", "references": "answer", "task": "task"}
    done = ingest([source(tmp_path, rows, fields=fields)], base=tmp_path)
    assert done.queries.column("task").to_pylist() == ["algebra", "s"]


def test_a_row_that_lacks_the_key_of_a_where_does_not_meet_it(tmp_path: Path) -> None:
    done = ingest(
        [source(tmp_path, [FULL, without("level")], where={"level": "low"})], base=tmp_path
    )
    assert done.queries.num_rows == 1
    with pytest.raises(RecipeError, match="no column 'levle'") as caught:
        ingest([source(tmp_path, [FULL], where={"levle": "low"})], base=tmp_path)
    assert "did you mean 'level'" in str(caught.value)


def test_a_column_that_no_row_has_is_a_slip(tmp_path: Path) -> None:
    fields = {"id": "id", "question": "question", "references": "anwser"}
    with pytest.raises(RecipeError, match="did you mean 'answer'"):
        ingest([source(tmp_path, [FULL], fields=fields)], base=tmp_path)


def test_the_rules_of_a_benchmark_reach_the_scorers(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "2 + 2?", "answer": "4"}\n')
    source = Source.model_validate(
        {"name": "s", "path": "q.jsonl", "scorer": "numeric", "answer_in": "solution"}
        | {"tolerance": 0.05, "fields": {"question": "question", "references": "answer"}}
    )
    (row,) = ingest([source], base=tmp_path).queries.to_pylist()
    assert json.loads(row["metadata"]) == {"answer_in": "solution", "tolerance": 0.05}
