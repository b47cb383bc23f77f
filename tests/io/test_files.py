"""Local files as rows: JSON is JSON however it is printed; separators of other countries."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from routeyard.pipelines.common import files
from routeyard.pipelines.common import files as named_files
from routeyard.pipelines.common.errors import SourceError

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
        named_files.expand("/proc/self/mem", base=tmp_path, where=where)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("path", "where", "says", "then"),
    [
        ("no.csv", "source 's'", "there is no file", "correct the path in the recipe, or put"),
        ("no*.csv", "--file", "there is no file", "correct --file, or put the file there"),
        ("data", "collect.recorded", "it is a folder", "name its files, e.g. data/*.csv.gz"),
        (
            "data/",
            "--recording",
            "it is a folder",
            "name its files, e.g. --recording 'data/*.csv.gz'",
        ),
        (
            "data/empty",
            "--file",
            "it is a folder",
            "name its files, e.g. --file 'data/empty/*.parquet'",
        ),
    ],
)
def test_a_path_that_is_no_file_says_what_to_do(
    tmp_path: Path, path: str, where: str, says: str, then: str
) -> None:
    # "correct the path in the recipe" was said of options too, and "no file" of folders alone.
    for name in ("a.csv.gz", "b.csv.gz", "c.jsonl", "notes.txt"):
        (tmp_path / "data" / "empty").mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text("")
    with pytest.raises(SourceError, match=says) as caught:
        named_files.expand(path, base=tmp_path, where=where)
    assert caught.value.next_step is not None
    assert caught.value.next_step.startswith(then)


def test_two_stars_are_folders_of_any_depth(tmp_path: Path) -> None:
    # `init` writes them for a folder with folders; a build read those one level down alone.
    for name in ("a.csv", "b/c.csv", "b/d/e.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = named_files.expand("**/*.csv", base=tmp_path, where="source 's'")
    assert [path.relative_to(tmp_path).as_posix() for path in found] == [
        "a.csv",
        "b/c.csv",
        "b/d/e.csv",
    ]


def test_two_stars_read_each_file_once(tmp_path: Path) -> None:
    # A link that leads back was followed 41 times.
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "loop").symlink_to(".")
    found = named_files.expand("**/*.csv", base=tmp_path, where="source 's'")
    assert found == [tmp_path / "a.csv"]


def _bomb(path: Path, first: bytes, piece: bytes) -> Path:
    with gzip.open(path, "wb") as stream:
        stream.write(first)
        for _ in range(11):
            stream.write(piece * 1_000_000)
    return path


@pytest.mark.parametrize(
    ("name", "first", "piece"),
    [
        ("spaces.jsonl.gz", b"", b" "),
        ("a list.json.gz", b"[", b" "),
        ("rows.jsonl.gz", b"", b"{}\n"),
        ("header.csv.gz", b"", b"a"),
    ],
)
def test_a_gzip_file_that_unfolds_to_more_than_text_would_is_refused(
    tmp_path: Path, name: str, first: bytes, piece: bytes
) -> None:
    # 6 GB of spaces in 6 MB were read into memory, and ended in a traceback or worse.
    path = _bomb(tmp_path / name, first, piece)
    with pytest.raises(SourceError, match="unfolds to more than"):
        list(files.rows(path))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.json"])
def test_a_line_longer_than_memory_should_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # A sparse file has a line of 40 GB, and costs its author nothing.
    monkeypatch.setattr(files, "LONGEST_LINE", 1_000)
    path = tmp_path / name
    path.write_text('{"a": "' + "x" * 2_000)
    with pytest.raises(SourceError, match="has a line of"):
        list(files.rows(path))


def test_memory_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(path: Path) -> None:
        raise MemoryError

    monkeypatch.setattr(files, "parquet_rows", short)
    with pytest.raises(SourceError, match="more memory than there is"):
        list(files.rows(tmp_path / "rows.parquet"))
