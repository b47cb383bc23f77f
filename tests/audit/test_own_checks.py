"""A user's own checks: SQL over the answers, in the audit and as gates of a build."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from pathlib import Path

import pytest

from routeyard.flows.audits import audit_path
from routeyard.pipelines.audit import own
from routeyard.schemas.errors import BadInput
from tests.conftest import Call
from tests.support import small_recorded

CHECK = """\
-- says: {n} of {of} answers cost more than a cent
-- severity: grave
-- needs: cost_usd
-- mends: cost
-- key: pool.models[].price_in
SELECT row, arm AS about FROM answers WHERE cost_usd > 0.01
"""


def check(folder: Path, text: str, name: str = "dear") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.sql").write_text(text)
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.csv"
    lines = [f"{arm},q{n},{n % 2},{0.02 if arm == 'b' and n < 3 else 0.001}"
             for n in range(20) for arm in "ab"]  # fmt: skip
    path.write_text("\n".join(["model,question_id,score,cost", *lines]) + "\n")
    return path


def test_a_check_of_six_lines_finds_its_rows(tmp_path: Path, results: Path, call: Call) -> None:
    folder = check(tmp_path / "mine", CHECK)
    done = call("audit", results, "--checks", folder, "--json")
    assert done.returncode == 3, done.stderr
    [finding] = [item for item in json.loads(done.stdout)["findings"] if item["kind"] == "dear"]
    assert (finding["about"], finding["count"], finding["severity"]) == ("b", 3, "grave")
    assert finding["says"] == "3 of 40 answers cost more than a cent"
    assert finding["rows"][0]["at"] == "results.csv, row 2"
    assert "mean cost" in finding["effect"]
    listed = call("audit", "--list", "--checks", folder).stdout
    assert "WHERE cost_usd > 0.01" in listed
    assert "zero_cost: grave; needs cost_usd" in listed


def test_a_row_that_a_check_gives_several_times_is_counted_once(
    tmp_path: Path, results: Path
) -> None:
    folder = check(tmp_path / "mine", CHECK.replace("FROM answers", "FROM answers, range(3)"))
    [finding] = [one for one in audit_path(results, own=own.checks_in(folder)).findings
                 if one.kind == "dear"]  # fmt: skip
    assert (finding.count, finding.says) == (3, "3 of 40 answers cost more than a cent")


def test_options_for_results_are_refused_beside_others(results: Path, call: Call) -> None:
    folder = check(results.parent / "mine", CHECK)
    for words in (
        ("--labels", "--checks", folder),
        ("--labels", "--map", "arm=model"),
        ("--release", results.parent, "--models", "a,b"),
    ):
        done = call("audit", results, *words)
        assert done.returncode == 2, done.stdout
        assert "results, an import or a release for --checks" in done.stderr


def test_a_check_without_its_columns_is_not_run(tmp_path: Path, results: Path) -> None:
    folder = check(tmp_path / "mine", CHECK.replace("needs: cost_usd", "needs: latency_s"))
    assert audit_path(results, own=own.checks_in(folder)).not_checked["dear"] == "latency_s"


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT row FROM read_csv('/etc/passwd')", "file system operations are disabled"),
        ("COPY answers TO '/tmp/never.csv'", "expected one SELECT"),
        ("ATTACH '/tmp/never.duckdb'", "expected one SELECT"),
        ("INSTALL httpfs", "expected one SELECT"),
        ("SELECT row FROM 'https://example.org/x.parquet'", "cannot be run"),
        ("SELECT max(hash(range)) AS row FROM range(10_000_000_000_000)", "more time than it may"),
        ("SELECT row FROM answers; DROP VIEW answers", "expected one SELECT"),
        ("SELECT row + 100 AS row FROM answers", "rows that `answers` does not have"),
        ("SELECT NULL::BIGINT AS row FROM answers", r"does not have: no row \(NULL\)"),
        ("SELECT max(row) AS row FROM answers WHERE score > 2", r"no row \(NULL\)"),
        ("SELECT question FROM answers", "expected a column 'row'; found question"),
        ("SELECT row FROM answers WHERE tokens", 'Referenced column "tokens" not found'),
        ("SELEC row", "syntax error"),
    ],
)
def test_a_check_that_does_anything_else_is_stopped(
    tmp_path: Path, results: Path, sql: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own._WORKER, "limits", replace(own.LIMITS, cpu_s=0.6))
    head = CHECK.rpartition("SELECT")[0]
    folder = check(tmp_path / "mine", head + sql)
    with pytest.raises(BadInput, match=says) as caught:
        audit_path(results, own=own.checks_in(folder))
    assert "dear.sql" in str(caught.value.where)
    assert "`answers`" in str(caught.value.next_step)
    assert ("the columns row, arm, " in str(caught.value.next_step)) == ("column" in says)
    assert not Path("/tmp/never.csv").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT row FROM answers", "the head of a check has the lines"),
        (
            CHECK.replace("grave", "fatal"),
            "severity: expected one of grave, doubt, note; found 'fatal'",
        ),
        (CHECK.replace("{of}", "{total}"), r"says: expected \{n\} .*; found \{total\}"),
        (
            CHECK.replace("mends: cost", "mends: all"),
            "mends: expected one of score, cost, nothing; found 'all'",
        ),
        (
            CHECK.replace("needs: cost_usd", "needs: cost"),
            "needs: expected one of arm, question, .*; found 'cost'",
        ),
    ],
)
def test_a_head_that_says_something_else_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        own.checks_in(check(tmp_path / "mine", text))
    with pytest.raises(BadInput, match="there is no check"):
        own.checks_in(tmp_path)


def test_a_check_beside_a_recipe_is_a_gate_of_its_build(tmp_path: Path, call: Call) -> None:
    recipe = small_recorded.write(tmp_path)
    (tmp_path / "checks").mkdir()  # somebody's folder without checks is not the build's
    assert call("build", recipe, "--workspace", tmp_path / "first").returncode == 0
    head = CHECK.rpartition("SELECT")[0].replace("needs: cost_usd", "needs: text")
    folder = check(tmp_path / "checks", head + "SELECT row FROM answers WHERE text = 'x'")
    words = ("build", recipe, "--workspace", tmp_path / "yard")
    done = call(*words)
    assert done.returncode == 0, done.stderr
    check(folder, head + "SELECT row, arm AS about FROM answers WHERE text = 'Answer: 3'")
    done = call(*words)
    assert done.returncode == 3, done.stdout
    assert "audit:dear: careful: 1 of 23 answers" in done.stderr + done.stdout


def test_the_answers_of_a_check_lie_on_disk_no_longer_than_they_are_used(
    tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "disk"))
    (tmp_path / "disk").mkdir()
    page = audit_path(results, own=own.checks_in(check(tmp_path / "mine", CHECK)))
    assert "dear" in {finding.kind for finding in page.findings}
    del page
    gc.collect()  # pytest turns what is left to the garbage collector into an error
    assert not list((tmp_path / "disk").glob("routeyard-check-*"))


def test_a_folder_without_checks_and_names_of_built_in_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        own.checks_in(tmp_path / "none")
    with pytest.raises(BadInput, match="built-in checks are called zero_cost"):
        own.checks_in(check(tmp_path / "mine", CHECK, name="zero_cost"))
