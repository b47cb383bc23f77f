"""`where` and `exclude` that match nothing are said, never silently obeyed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest import ingest
from routeyard.schemas.recipe import Source

ROWS = [
    {"id": "a", "question": "2 + 2?", "answer": "4", "level": 1, "kind": "sum"},
    {"id": "b", "question": "2 x 3?", "answer": "6", "level": 2, "kind": "product"},
]


def source(folder: Path, rows: list[dict[str, Any]] = ROWS, **changes: Any) -> Source:
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = {"name": "s", "path": "q.jsonl", "scorer": "numeric"}
    said["fields"] = {"id": "id", "question": "question", "references": "answer"}
    # A column that nothing reads would be noted.
    said["fields"]["metadata"] = ["kind", "level"]
    return Source.model_validate(said | changes)


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
        ingest([source(tmp_path, where=where)], base=tmp_path)
    assert says in str(caught.value)
    assert caught.value.exit_code == 2
    assert "'s'" in str(caught.value)


def test_an_exclude_that_leaves_nothing_out_is_said_and_stops_nothing(tmp_path: Path) -> None:
    done = ingest([source(tmp_path, exclude={"kind": "sums"})], base=tmp_path)
    assert done.queries.num_rows == 2
    assert len(done.notes) == 1
    assert "'exclude' of source 's' leaves nothing out" in done.notes[0]
    assert "did you mean 'sum'" in done.notes[0]
    assert ingest([source(tmp_path, exclude={"kind": "sum"})], base=tmp_path).notes == ()


def test_where_and_exclude_read_names_in_one_way(tmp_path: Path) -> None:
    rows = [{**row, "meta": {"lang": lang}} for row, lang in zip(ROWS, ("de", "en"), strict=True)]
    # Trap: `exclude` read plain columns only, and silently left every nested one in.
    for condition in ({"meta.lang": "de"}, {"{{ meta.lang }}": "de"}):
        taken = ingest([source(tmp_path, rows, where=condition)], base=tmp_path)
        assert taken.queries.column("source_id").to_pylist() == ["a"]
        left = ingest([source(tmp_path, rows, exclude=condition)], base=tmp_path)
        assert left.queries.column("source_id").to_pylist() == ["b"]
        assert (left.notes, len(left.removed)) == ((), 1)


def test_an_exclude_by_a_column_that_no_row_has_is_said_with_the_columns(tmp_path: Path) -> None:
    done = ingest([source(tmp_path, exclude={"kinds": "sum"})], base=tmp_path)
    assert done.queries.num_rows == 2
    assert "there is no column 'kinds'" in done.notes[0]
    assert "did you mean 'kind'" in done.notes[0]


def test_a_row_that_lacks_the_column_is_not_excluded(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [ROWS[0], {k: v for k, v in ROWS[1].items() if k != "kind"}]
    fields = {"id": "id", "question": "question", "references": "answer", "metadata": ["level"]}
    one = source(tmp_path, rows, exclude={"kind": "sum"}, fields=fields)
    done = ingest([one], base=tmp_path)
    assert (done.queries.column("source_id").to_pylist(), done.notes) == (["b"], ())


def test_a_source_without_a_row_stops(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no question"):
        ingest([source(tmp_path, rows=[])], base=tmp_path)
