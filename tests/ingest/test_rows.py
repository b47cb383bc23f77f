"""Rows that `where` and `exclude` select, and keys that rows of JSON lines leave out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.common.errors import RecipeError, SourceError
from routeyard.pipelines.ingest import ingest
from routeyard.pipelines.ingest.queries import Ingested
from routeyard.schemas.recipe import Source

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "2 + 2?", "answer": "4", "level": 1, "kind": "sum"},
    {"id": "b", "question": "2 x 3?", "answer": "6", "level": 2, "kind": "product"},
]
FIELDS = {"id": "id", "question": "question", "references": "answer"}


def taken(folder: Path, rows: list[dict[str, Any]] = ROWS, **changes: Any) -> Ingested:
    """What a source of these rows gives."""
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    # A column that nothing reads would be noted.
    said = {"name": "s", "path": "q.jsonl", "scorer": "numeric", "domain": "math",
            "fields": FIELDS | {"metadata": ["kind", "level"]}}  # fmt: skip
    return ingest([Source.model_validate(said | changes)], base=folder)


def ids(done: Ingested) -> list[str]:
    return list(done.queries.column("source_id").to_pylist())


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"kind": "sums"}, "did you mean 'sum'"),
        ({"level": "1"}, "write 1: the column holds numbers"),
        ({"level": 3}, "the column has 1, 2"),
        ({"kind": "sum", "level": 2}, "at once"),  # each matches, both together never
    ],
)
def test_where_that_matches_nothing_stops(tmp_path: Path, where: dict[str, Any], says: str) -> None:
    with pytest.raises(SourceError, match="matches nothing") as caught:
        taken(tmp_path, where=where)
    assert says in str(caught.value)
    assert caught.value.exit_code == 2
    assert "'s'" in str(caught.value)


def test_an_exclude_that_leaves_nothing_out_is_said_and_stops_nothing(tmp_path: Path) -> None:
    done = taken(tmp_path, exclude={"kind": "sums"})
    assert done.queries.num_rows == 2
    assert len(done.notes) == 1
    assert "'exclude' of source 's' leaves nothing out" in done.notes[0]
    assert "did you mean 'sum'" in done.notes[0]
    assert taken(tmp_path, exclude={"kind": "sum"}).notes == ()


def test_where_and_exclude_read_names_in_one_way(tmp_path: Path) -> None:
    rows = [{**row, "meta": {"lang": lang}} for row, lang in zip(ROWS, ("de", "en"), strict=True)]
    # Trap: `exclude` read plain columns only, and silently left every nested one in.
    for condition in ({"meta.lang": "de"}, {"{{ meta.lang }}": "de"}):
        assert ids(taken(tmp_path, rows, where=condition)) == ["a"]
        left = taken(tmp_path, rows, exclude=condition)
        assert ids(left) == ["b"]
        assert (left.notes, len(left.removed)) == ((), 1)


def test_an_exclude_by_a_column_that_no_row_has_is_said_with_the_columns(tmp_path: Path) -> None:
    done = taken(tmp_path, exclude={"kinds": "sum"})
    assert done.queries.num_rows == 2
    assert "there is no column 'kinds'" in done.notes[0]
    assert "did you mean 'kind'" in done.notes[0]


def test_a_row_that_lacks_the_column_is_not_excluded(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [ROWS[0], {k: v for k, v in ROWS[1].items() if k != "kind"}]
    fields = FIELDS | {"metadata": ["level"]}
    done = taken(tmp_path, rows, exclude={"kind": "sum"}, fields=fields)
    assert (ids(done), done.notes) == (["b"], ())


def test_a_source_without_a_row_stops(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no question"):
        taken(tmp_path, rows=[])


FULL = {"id": "a", "question": "2 + 2?", "answer": "4", "level": "low", "topic": "sums"}
TOPIC = FIELDS | {"domain": "topic"}


def without(key: str) -> dict[str, Any]:
    return {k: v for k, v in FULL.items() if k != key} | ({} if key == "id" else {"id": "b"})


def test_an_optional_key_is_missing_and_counted(tmp_path: Path) -> None:
    done = taken(tmp_path, [FULL, without("topic")], fields=TOPIC)
    assert done.queries.column("domain").to_pylist() == ["sums", "math"]
    assert done.notes == (
        "source 's': columns that were not read: 'level'",
        "source 's': 1 of 2 rows have no key for fields.domain: taken as missing",
    )


@pytest.mark.parametrize("key", ["id", "question"])
def test_a_needed_key_is_asked_for_with_its_line(tmp_path: Path, key: str) -> None:
    with pytest.raises(RecipeError, match="what every row needs") as caught:
        taken(tmp_path, [FULL, without(key)], fields=TOPIC)
    assert f"fields.{key}, line 2" in str(caught.value)


def test_a_missing_reference_is_said_or_left_out(tmp_path: Path) -> None:
    rows = [FULL, without("answer")]
    with pytest.raises(SourceError, match="without a reference"):
        taken(tmp_path, rows, fields=TOPIC)
    done = taken(tmp_path, rows, incomplete="remove", fields=TOPIC)
    assert done.queries.num_rows == 1


def test_a_missing_question_is_said_or_left_out(tmp_path: Path) -> None:
    rows = [FULL, {**FULL, "id": "empty", "question": " "}, {**without("question"), "id": "no key"}]
    with pytest.raises(SourceError, match="without a question") as caught:
        taken(tmp_path, rows[:2], fields=TOPIC)
    assert "incomplete: remove" in str(caught.value)
    done = taken(tmp_path, rows, incomplete="remove", fields=TOPIC)
    assert done.queries.num_rows == 1
    assert [(key, why) for key, why, _ in done.removed] == [
        ("s|empty", "no_question"),
        ("s|no key", "no_question"),
    ]


def test_an_empty_task_is_that_of_its_source(tmp_path: Path) -> None:
    rows = [{**FULL, "task": "algebra"}, {**FULL, "id": "other", "task": ""}]
    fields = FIELDS | {"task": "task"}
    done = taken(tmp_path, rows, fields=fields)
    assert done.queries.column("task").to_pylist() == ["algebra", "s"]


def test_a_row_that_lacks_the_key_of_a_where_does_not_meet_it(tmp_path: Path) -> None:
    done = taken(tmp_path, [FULL, without("level")], where={"level": "low"}, fields=TOPIC)
    assert done.queries.num_rows == 1
    with pytest.raises(RecipeError, match="no column 'levle'") as caught:
        taken(tmp_path, [FULL], where={"levle": "low"}, fields=TOPIC)
    assert "did you mean 'level'" in str(caught.value)


def test_a_column_that_no_row_has_is_a_slip(tmp_path: Path) -> None:
    fields = FIELDS | {"references": "anwser"}
    with pytest.raises(RecipeError, match="did you mean 'answer'"):
        taken(tmp_path, [FULL], fields=fields)


def test_the_rules_of_a_benchmark_reach_the_scorers(tmp_path: Path) -> None:
    done = taken(tmp_path, [FULL], answer_in="solution", tolerance=0.05, fields=FIELDS)
    (row,) = done.queries.to_pylist()
    assert json.loads(row["metadata"]) == {"answer_in": "solution", "tolerance": 0.05}
