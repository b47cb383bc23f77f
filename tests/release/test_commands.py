"""The commands, as a person types them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run


def test_verify_exits_0_and_3(release, capsys):
    assert run(["verify", str(release)]) == 0
    assert "tiny 1.0.0 holds" in capsys.readouterr().out
    (release / "data/labels.parquet").write_bytes(b"")
    assert run(["verify", str(release)]) == 3
    said = capsys.readouterr()
    assert "data/labels.parquet" in said.out
    assert "next:" in said.err


def test_verify_counts_test_questions_that_stand_in_train(write, tables, capsys):
    # A published split is kept as it was: the release holds, and the leak is said.
    queries = tables["queries"]
    at = queries.schema.get_field_index("prompt")
    prompts = queries.column("prompt").to_pylist()
    prompts[0] = "  " + prompts[1].upper()
    tables["queries"] = queries.set_column(at, queries.schema.field(at), [prompts])
    release = write(tables).path
    assert run(["verify", str(release)]) == 0
    assert (
        "split scheme 'dense': of 2 test questions 1 are word for word in train"
        in capsys.readouterr().out
    )
    assert run(["verify", str(release), "--json"]) == 0
    (leak,) = json.loads(capsys.readouterr().out)["leaks"]
    assert (leak["scheme"], leak["test"], leak["verbatim"]) == ("dense", 2, 1)
    # The recipe has no `dedup`: its empty table of near-duplicates is not "none".
    assert leak["near_duplicates"] is None
    out = release.parents[2] / "certified"
    assert run(["certify", str(release), "--out", str(out), "--resamples", "100"]) == 0
    said = json.loads((out / "certificate.json").read_text())["test_in_train"]
    assert said == {"dense": {"test": 2, "verbatim": 1, "near_duplicates": None}}


def test_query_prints_in_four_formats(release, capsys):
    sql = "SELECT model_id, avg(score) AS acc, NULL AS n FROM labels GROUP BY ALL ORDER BY ALL"
    for form in ("table", "csv", "json", "markdown"):
        assert run(["query", str(release), sql, "--format", form]) == 0
        said = capsys.readouterr().out
        if form == "json":
            assert json.loads(said)[1] == {"model_id": "m1", "acc": 0.5, "n": None}
        if form == "csv":
            assert said.splitlines()[2] == "m1,0.5,"
        if form == "markdown":
            assert said.splitlines()[3] == "| m1 | 0.5 | – |"
        if form == "table":
            assert "(3 rows)" in said


def test_query_writes_files_and_lists_saved_ones(release, tmp_path, capsys):
    out = tmp_path / "answer.parquet"
    assert run(["query", str(release), "@leaderboard", "--out", str(out)]) == 0
    assert pq.read_table(out).num_rows == 3
    assert run(["query", str(release), "@leaderboard", "--out", str(tmp_path / "x.xls")]) == 2
    assert run(["query", str(release), "--list"]) == 0
    assert "@cheapest_correct" in capsys.readouterr().out


def test_terminal_codes_in_an_answer_do_not_reach_the_terminal(release, capsys):
    assert (
        run(["query", str(release), "SELECT 'a' || chr(27) || '[2J' || chr(10) || 'b' AS x"]) == 0
    )
    assert "\x1b" not in capsys.readouterr().out


def test_query_refuses_to_write(release, capsys):
    assert run(["query", str(release), "DROP TABLE labels"]) == 2
    assert "read-only" in capsys.readouterr().err


def test_shell_goes_on_after_an_error(release, capsys, monkeypatch):
    lines = (
        "SELECT nothing FROM labels;\nSELECT count(*)\nAS pairs FROM labels;\n@oracle\n.tables\n"
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    assert run(["query", str(release)]) == 0
    said = capsys.readouterr()
    assert "error:" in said.err
    assert "17" in said.out
    assert "best_single" in said.out


def test_diff_yank_changelog_export_publish(write, tables, tmp_path, capsys):
    one = str(write().path)
    two = str(
        write({**tables, "labels": tables["labels"].slice(1)}, recipe={"version": "1.1.0"}).path
    )
    assert run(["diff", one, one]) == 0
    assert "hold the same" in capsys.readouterr().out
    assert run(["diff", one, two, "--out", str(tmp_path / "changes")]) == 0
    assert "labels: 1 vanished" in capsys.readouterr().out
    assert pq.read_table(tmp_path / "changes/labels.parquet").num_rows == 1
    assert run(["yank", one, "--reason", "one label too many", "--use-instead", "1.1.0"]) == 0
    assert run(["diff", "--changelog", str(Path(one).parent)]) == 0
    assert "Yanked" in capsys.readouterr().out
    assert run(["export", "ulab", two, str(tmp_path / "bundle")]) == 0
    assert run(["publish", two, "--to", str(tmp_path / "shelf"), "--dry-run"]) == 0
    assert not (tmp_path / "shelf").exists()
    assert run(["publish", two, "--to", str(tmp_path / "shelf")]) == 0
    assert (tmp_path / "shelf/tiny/1.1.0/manifest.json").is_file()


def test_a_damaged_release_is_not_published(release, tmp_path, capsys):
    (release / "README.md").write_text("nothing")
    assert run(["publish", str(release), "--to", str(tmp_path / "shelf")]) == 3
    assert not (tmp_path / "shelf").exists()


@pytest.mark.parametrize("name", ["verify", "query", "diff", "import", "publish"])
def test_help_shows_an_example(name, capsys):
    assert run([name, "--help"]) == 0
    assert f"routeyard {name} " in capsys.readouterr().out


@pytest.mark.extensions
def test_no_command_writes_into_a_release(release, tmp_path, capsys):
    # `query --out` took the place of a sealed table, `diff --changelog --out` that of the card.
    there = str(release)
    before = {path: path.read_bytes() for path in release.rglob("*") if path.is_file()}
    for words in (
        ["query", there, "SELECT 1", "--out", f"{there}/data/labels.parquet"],
        ["diff", "--changelog", str(release.parent), "--out", f"{there}/README.md"],
        ["diff", there, there, "--out", f"{there}/changes"],
        ["export", "embedllm", there, f"{there}/bundle"],
        ["route", there, "What?", "--save", f"{there}/router"],
        ["audit", there, "--labels", "--out", there],
        ["leaderboard", str(tmp_path), "--out", f"{there}/board.csv"],
        ["publish", there, "--to", there],
    ):
        assert run(words) == 2, words
        assert "inside a release, whose seal a new file would break" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in release.rglob("*") if path.is_file()} == before
    # Beside it is as good as anywhere, whatever else is called a manifest there.
    (tmp_path / "manifest.json").write_text("{}")
    assert run(["query", there, "SELECT 1", "--out", str(tmp_path / "one.csv")]) == 0
