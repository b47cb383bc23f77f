"""`relabel`, `audit --labels` and `review` over a workspace that holds a build."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from routeyard.flows.build import build
from routeyard.flows.cli import run
from routeyard.flows.label_audits import built
from routeyard.pipelines.label.scorers import numeric
from routeyard.pipelines.label.scorers.scorer import ScoreResult, ScoringInput


@pytest.fixture
def yard(small: Path) -> Path:
    return small.parent / "yard"


def test_relabel_reports_a_scorer_change_and_asks_nobody(
    yard: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["relabel", "small", "--workspace", str(yard), "--jobs", "1", "--json"]) == 0
    unchanged = {"labels": 0, "flipped": 0, "model_ranks": 0, "task_ranks": 0, "responses": 23}
    unchanged |= {"scorers": []}
    assert json.loads(capsys.readouterr().out) == unchanged

    def strict(about: ScoringInput, output: str) -> ScoreResult:
        return replace(numeric.read(about, output), outcome="incorrect", score=0.0)

    monkeypatch.setattr(numeric, "SCORER", replace(numeric.SCORER, version="999", read=strict))
    out = yard.parent / "relabelled"
    arguments = ["relabel", "small", "--workspace", str(yard), "--jobs", "1", "--out", str(out)]
    assert run(arguments) == 0
    said = capsys.readouterr().out
    right = sum(built("small", yard)["labels"]["correct"].to_pylist())
    assert f"23 responses read again, no model asked: {right} labels change ({right} to" in said
    assert (out / "changed_labels.parquet").is_file()
    # no request was sent: the workspace has no ledger
    assert not list(yard.glob("ledger/*"))


def test_audit_lists_findings_and_writes_tables(
    yard: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = yard.parent / "findings"
    command = ["audit", "small", "--labels", "--workspace", str(yard)]
    assert run([*command, "--out", str(out)]) == 0
    assert "careful: 100.00%, readable 100.00%, [100.00%, 100.00%]" in capsys.readouterr().out
    assert {path.stem for path in out.glob("*.csv")} >= {"accuracy", "suspect_gold", "confusion"}
    assert run([*command, "--json"]) == 0
    keys = {"findings", "accuracy", "not_labelled", "duplicates_looked_for"}
    assert keys == set(json.loads(capsys.readouterr().out))


def test_audit_reads_a_release_as_it_reads_the_build_it_was_made_from(
    yard: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "small", "--labels", "--workspace", str(yard), "--json"]) == 0
    of_build = json.loads(capsys.readouterr().out)
    (release,) = yard.glob("releases/small/*")
    assert run(["audit", str(release), "--labels", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == of_build


def test_a_decision_reaches_the_next_build(yard: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = next(
        row for row in built("small", yard)["labels"].to_pylist() if row["correct"] is False
    )
    decided = yard.parent / "decided.csv"
    with decided.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["query_id", "model_id", "sample", "decision", "note"])
        writer.writerow([wrong["query_id"], wrong["model_id"], 0, "correct", "read by hand"])
    arguments = ["review", "small", "--workspace", str(yard), "--take", str(decided)]
    assert run([*arguments, "--by", "ada"]) == 0
    assert "1 decisions kept" in capsys.readouterr().out
    recipe = yard.parent / "recipe.yaml"
    build.fn(recipe=str(recipe), workspace=str(yard), until="label")
    after = {
        (row["query_id"], row["model_id"]): (row["correct"], row["decided_by"])
        for row in built("small", yard)["labels"].to_pylist()
    }
    assert after[wrong["query_id"], wrong["model_id"]] == (True, "human:ada")
    queue = yard.parent / "queue.csv"
    assert run(["review", "small", "--workspace", str(yard), "--csv", str(queue)]) == 0
    assert queue.read_text().startswith("query_id,model_id,sample")


@pytest.mark.parametrize(
    "arguments",
    [["relabel", "nothing"], ["audit", "nothing", "--labels"], ["review", "small"]],
    ids=["relabel", "audit", "no-name"],
)
def test_what_cannot_be_done_is_said(
    yard: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--workspace", str(yard)]) == 2
    assert "next:" in capsys.readouterr().err
