"""The comparison of two commits finds what differs, and only that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.same import compare, judge, suite
from benchmarks.same.differences import Difference, of_folders, of_tables
from benchmarks.same.side import works

ROOT = Path(__file__).parents[2]
TABLE = pa.table(
    {"query_id": ["a", "b"], "model_id": ["m", "m"], "score": [1.0, None], "cost": [0.5, 2.0]}
)
NOWHERE: dict[str, dict[str, str]] = {"old": {}, "new": {}}


def test_the_order_of_rows_is_no_difference() -> None:
    assert list(of_tables(TABLE, TABLE.take([1, 0]))) == []


def test_a_changed_value_a_column_and_a_row_are_named() -> None:
    more = pa.table({
        "query_id": ["a", "b", "c"], "model_id": ["m"] * 3, "score": [1.0, 0.0, 1.0],
        "usd": [0.5, 2.0, 1.0],
    })  # fmt: skip
    assert sorted(of_tables(TABLE, more)) == [
        ("", "0 rows only before, 1 only now"),
        ("", "2 rows → 3"),
        ("cost", "column only before"),
        ("score", "1 of 2 rows: 'None' → '0.0'"),
        ("usd", "column only now"),
    ]


def _write(folder: Path, score: float) -> Path:
    place = folder / "files" / "demo" / "build"
    place.mkdir(parents=True)
    pq.write_table(TABLE.set_column(2, "score", pa.array([score, None])), place / "labels.parquet")
    with duckdb.connect(str(place / "release.duckdb")) as connection:
        connection.execute("CREATE TABLE labels (model TEXT, score DOUBLE)")
        connection.execute("INSERT INTO labels VALUES ('m', ?)", [score])
    (place / "figures.json").write_text(json.dumps({"rows": [{"score": score}], "at": str(folder)}))
    (place / "card.md").write_text(f"# Card\n\nscore {score}\n")
    ended = [{"kind": "build", "exit": 0, "error": None, "seconds": 1.0}]
    side = {"commit": "c", "paths": {str(folder): "<side>"}, "kinds": ["build"], "skipped": {},
            "works": {"demo": ended}}  # fmt: skip
    (folder / "side.json").write_text(json.dumps(side))
    return folder


def test_two_sides_that_are_the_same_but_for_their_folder(tmp_path: Path) -> None:
    old, new = _write(tmp_path / "old", 1.0), _write(tmp_path / "new", 1.0)
    found = compare(old, new, ("build",))
    assert (found["differences"], found["exit"]) == ([], 0)


def test_a_command_that_fails_on_both_sides_proves_nothing(tmp_path: Path) -> None:
    old, new = _write(tmp_path / "old", 1.0), _write(tmp_path / "new", 1.0)
    for side in (old, new):
        text = (side / "side.json").read_text().replace('"exit": 0', '"exit": 2')
        (side / "side.json").write_text(text)
    found = compare(old, new, ("build",))
    assert (found["failed"], found["exit"]) == (["demo build: exit 2"], 3)


def test_each_file_of_a_side_that_differs_is_named(tmp_path: Path) -> None:
    old, new = _write(tmp_path / "old", 1.0), _write(tmp_path / "new", 0.0)
    (new / "files" / "demo" / "build" / "more.txt").write_text("x")
    found = compare(old, new, ("build",))
    assert found["exit"] == 3
    assert [one.partition(": ")[0] for one in found["differences"]] == [
        f"demo/build/{name}"
        for name in ("card.md", "figures.json", "labels.parquet", "more.txt", "release.duckdb")
    ]


def test_a_wanted_difference_has_a_sentence_and_one_without_is_stale(tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.yaml"
    wanted.write_text(
        "- {what: 'labels.parquet: cost', because: Costs are in USD.}\n"
        "- {what: nothing, because: Nobody needs this.}\n"
        "- {what: seconds, because: Times differ., always: true}\n"
        "- {what: stdout, how: '^2 lines: - view', because: A command is called otherwise.}\n"
    )
    found = [
        Difference("demo/build/labels.parquet: cost", "1"),
        Difference("demo/build/labels.parquet: score", "1"),
        Difference("demo/build/stdout.txt", "9 lines: - view | - release"),
        Difference("demo/build/stdout.txt", "2 lines: - view | + site"),
    ]
    left, counts, stale = judge(found, whole=True, wanted=wanted)
    assert left == found[1:3]
    assert counts["Costs are in USD."] == counts["A command is called otherwise."] == 1
    assert stale == ["Nobody needs this."]


def test_every_matrix_and_shape_is_audited(tmp_path: Path) -> None:
    for name in ("matrices/a.parquet", "shapes/b/c.csv"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    names = [one.name for one in works(tmp_path)]
    assert {"audit-matrices-a", "audit-shapes-b", "demo", "reproduce-cscr"} <= set(names)


REFUSING = """
import subprocess, sys
import pytest
from routeyard.flows.cli import run
from routeyard.schemas.errors import BadInput

def test_refusals(capsys):
    with pytest.raises(BadInput):
        raise BadInput("no", where="a.csv", next_step="mend it")
    assert run(["build", "nothing.yaml"]) == 2
    assert "error:" in capsys.readouterr().err
    command = [sys.executable, "-m", "routeyard", "nonsense"]
    assert subprocess.run(command, capture_output=True).returncode == 2
    with pytest.raises(ValueError):
        raise ValueError
"""


def test_refusals_of_tests_are_recorded_and_compared(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(REFUSING)
    rows = tmp_path / "rows"
    rows.mkdir()
    plugin = ROOT / "benchmarks" / "same" / "plugin"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "same_refusals", "-n", "0", "test_it.py"],
        cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": f"{plugin}{os.pathsep}{ROOT}", "SAME_REFUSALS": str(rows)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = rows.iterdir()
    kept = [json.loads(line) for line in written.read_text().splitlines()]
    assert [(row["how"], row["exit"], row["where"], row["next"]) for row in kept] == [
        ("error", 2, True, True),
        ("run", 2, True, True),
        ("command", 2, False, True),
    ]
    text = written.read_text()
    lost = text.replace('"next": true, "how": "run"', '"next": false, "how": "run"')
    for side, rows_of in (("old", text), ("new", text), ("lost", lost)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "refusals.jsonl").write_text(rows_of)
    for side in ("new", "lost"):
        found = suite.compared(tmp_path / "old", tmp_path / side)
        assert bool(found["differences"]) is (side == "lost")
        assert found["before"] == found["now"] == 3


def test_files_of_one_side_are_differences(tmp_path: Path) -> None:
    for side in ("old", "new"):
        (tmp_path / side).mkdir()
    (tmp_path / "old" / "a.txt").write_text("")
    assert of_folders(tmp_path / "old", tmp_path / "new", NOWHERE) == [
        Difference("a.txt", "only before")
    ]
