"""Local files as rows: JSON is JSON however it is printed; separators of other countries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines import files
from pipelines.errors import SourceError

ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": "y\n{"}]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_a_json_document_is_its_rows(tmp_path: Path, indent: int | None, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    path.write_text(json.dumps(ROWS, indent=indent))
    assert list(files.rows(path)) == ROWS
    path.write_text("\n".join(json.dumps(row, indent=2) for row in ROWS))
    assert list(files.rows(path)) == ROWS
    path.write_text(json.dumps({"version": 1, "data": ROWS}, indent=2))
    assert list(files.rows(path)) == ROWS


def test_one_object_per_line_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": [{"b": 1}]}\n\n{"a": []}\n')
    assert list(files.rows(path)) == [{"a": [{"b": 1}]}, {"a": []}]


@pytest.mark.parametrize("text", ["[1, 2]\n", '[{"a": 1},\n', '{\n "a": \n'])
def test_what_is_no_document_of_objects_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(SourceError, match="line 1 is not"):
        list(files.rows(path))


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_separators_are_read_from_the_header(tmp_path: Path, sign: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(sign.join(["frage", "antwort"]) + "\n" + sign.join(["Wie viel?", "3"]) + "\n")
    assert list(files.rows(path)) == [{"frage": "Wie viel?", "antwort": "3"}]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    # A file of the kernel is there, and reading it fails: so does one of another user.
    where = "source 's'"
    with pytest.raises(SourceError, match="cannot be read") as caught:
        files.expand("/proc/self/mem", base=tmp_path, where=where)
    assert caught.value.where == where
