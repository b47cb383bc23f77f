"""The embedded default, end to end: what a new user gets from `routeyard demo`."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from routeyard.flows.cli import run

SQL = "SELECT model_id, task, avg(score) FROM labels JOIN queries USING (query_id) GROUP BY ALL"


def ask(release: Path, sql: str) -> list[tuple]:
    with duckdb.connect(str(release / "demo.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def told(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What a command prints."""
    capsys.readouterr()
    done, said = run([*map(str, words)]), capsys.readouterr()
    assert done == 0, said.err
    return said.out


def test_the_summary_says_what_matters(demo_yard: Path) -> None:
    printed = (demo_yard / "printed.txt").read_text()
    assert "SIMULATED" in printed
    for word in ("oracle", "best single model", "near-duplicates", "cost", "routeyard site"):
        assert word in printed
    release = demo_yard / "releases" / "demo" / "1.0.0"
    assert str(release) in printed
    assert "simulated" in (release / "README.md").read_text().lower()


def test_accuracies_are_the_planted_strengths_within_binomial_error(demo_release: Path) -> None:
    from routeyard.flows.demo.answers import pool

    strengths = {(m.model_id, task): p for m in pool().values() for task, p in m.strengths.items()}
    sql = (
        "SELECT model_id, task, avg(score), count(score) "
        "FROM labels JOIN queries USING (query_id) GROUP BY ALL"
    )
    rows = ask(demo_release, sql)
    assert len({model for model, *_ in rows}) >= 8
    worst, chi_square = 0.0, 0.0
    for model, task, accuracy, n in rows:
        strength = strengths[model, task]
        z = (accuracy - strength) / math.sqrt(strength * (1 - strength) / n)
        worst, chi_square = max(worst, abs(z)), chi_square + z * z
    # 99 pairs: a |z| above 4 has a chance of 0.6 %, a chi-square above 150 one of 0.1 %.
    assert worst < 4
    assert chi_square < 150


def test_planted_duplicates_are_found_and_share_a_split(demo_release: Path) -> None:
    groups = ask(demo_release, "SELECT count(DISTINCT group_id) FROM duplicates")[0][0]
    assert groups >= 20
    straddling = (
        "SELECT group_id FROM duplicates JOIN splits USING (query_id) "
        "GROUP BY group_id HAVING count(DISTINCT split) > 1"
    )
    assert ask(demo_release, straddling) == []


def test_every_absent_question_is_explained(demo_yard: Path, demo_release: Path) -> None:
    bank = (demo_yard / "demo" / "bank.jsonl").read_text().splitlines()
    kept = ask(demo_release, "SELECT count(*) FROM queries")[0][0]
    explained = ask(demo_release, "SELECT count(*) FROM removals WHERE entity = 'query'")[0][0]
    assert kept + explained == len(bank)
    # The sources take in the whole bank, each question as it is written there.
    written = {row["id"]: row["question"] for row in map(json.loads, bank)}
    rows = ask(demo_release, "SELECT source_id, question, prompt FROM queries")
    assert all(text == written[name] and text in prompt for name, text, prompt in rows)


def test_the_same_answer_in_python_and_on_the_command_line_from_anywhere(
    demo_release: Path, tmp_path: Path, call
) -> None:
    for path in (demo_release, *demo_release.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        here = sorted(ask(demo_release, SQL))
        done = call("query", demo_release, SQL, "--format", "json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        there = sorted(tuple(row.values()) for row in json.loads(done.stdout))
    finally:
        for path in (demo_release, *demo_release.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
    assert [row[:2] for row in here] == [row[:2] for row in there]
    assert [row[2] for row in here] == pytest.approx([row[2] for row in there])


def test_load_dataset_reads_it_offline(demo_release: Path, tmp_path: Path) -> None:
    code = (
        "import datasets, sys; "
        "[print(datasets.load_dataset(sys.argv[1], t, split='train').num_rows) "
        "for t in ('labels', 'queries')]"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(demo_release)],
        env=os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    counts = [ask(demo_release, f"SELECT count(*) FROM {t}")[0][0] for t in ("labels", "queries")]
    assert [int(line) for line in done.stdout.split()[-2:]] == counts


def test_a_second_build_changes_nothing_and_asks_nothing(demo_yard: Path, capsys) -> None:
    ledger = demo_yard / "ledger" / "ledger.sqlite"

    def attempts() -> int:
        with closing(sqlite3.connect(ledger)) as connection:
            return int(connection.execute("SELECT count(*) FROM attempts").fetchone()[0])

    before = attempts()
    summary = json.loads(told(capsys, "build", "demo", "--workspace", demo_yard, "--json"))
    assert summary["release"]["status"] == "unchanged"
    assert all(stage["reused"] for stage in summary["stages"].values())
    assert attempts() == before


@pytest.mark.slow
def test_another_workspace_with_the_same_ledger_gives_the_same_bytes(
    demo_yard: Path, demo_release: Path, tmp_path: Path, call
) -> None:
    yard = tmp_path / "elsewhere"
    # Vectors too: embedding them anew takes most of the time.
    shutil.copytree(demo_yard / "cache", yard / "cache")
    (yard / "ledger").mkdir()
    with (
        closing(sqlite3.connect(demo_yard / "ledger" / "ledger.sqlite")) as source,
        closing(sqlite3.connect(yard / "ledger" / "ledger.sqlite")) as copy,
    ):
        source.backup(copy)
    done = call("demo", "--workspace", yard)
    assert done.returncode == 0, done.stderr

    def digests(release: Path) -> dict[str, str]:
        return {
            path.relative_to(release).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in release.rglob("*")
            if path.is_file() and path.suffix not in (".duckdb", ".sha256")
        }

    again = yard / "releases" / "demo" / "1.0.0"
    assert digests(again) == digests(demo_release)
    manifests = [json.loads((r / "manifest.json").read_text()) for r in (again, demo_release)]
    assert manifests[0]["database"]["content"] == manifests[1]["database"]["content"]


def test_status_says_fresh_and_names_what_a_change_makes_stale(
    demo_yard: Path, tmp_path: Path, capsys
) -> None:
    rows = json.loads(told(capsys, "status", "demo", "--workspace", demo_yard, "--json"))
    assert {row["state"] for row in rows} == {"fresh"}
    recipe = tmp_path / "demo.yaml"
    text = told(capsys, "recipe", "check", "demo", "--print", "--defaults").replace(
        "threshold: 0.999", "threshold: 0.99"
    )
    recipe.write_text(text)
    rows = json.loads(told(capsys, "status", recipe, "--workspace", demo_yard, "--json"))
    states = {row["stage"]: row for row in rows}
    assert states["label"]["state"] == "fresh"
    assert states["curate"]["state"] == "stale"
    assert "'rules' changed" in states["curate"]["why"]
    assert states["release"]["state"] == "waiting"
    # In a shared workspace a recipe that never got there is not compared with the others.
    recipe.write_text(text.replace("name: demo\n", "name: another\n", 1))
    rows = json.loads(told(capsys, "status", recipe, "--workspace", demo_yard, "--json"))
    assert [row["why"] for row in rows if row["state"] == "stale"] == ["never run for this recipe"]


def test_a_plan_counts_what_is_there(demo_yard: Path, tmp_path: Path, capsys) -> None:
    empty = json.loads(told(capsys, "plan", "demo", "--workspace", tmp_path / "y", "--json"))
    full = json.loads(told(capsys, "plan", "demo", "--workspace", demo_yard, "--json"))
    assert empty["calls"] == empty["queries"] * empty["models_in_pool"]
    assert empty["cost_usd"] > 0
    assert (full["calls"], full["missing"]) == (0, 0)
    assert not (tmp_path / "y" / "ledger").exists()  # a plan asks and keeps nothing
