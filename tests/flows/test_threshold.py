"""A recipe's threshold of 0.8 is what right means: in labels, queries, audit, certificate, figures.

Three models, 60 questions of three tasks, graded by ROUGE-L: the specialist of task `a` has 0.9,
that of `b` 1.0, everyone else 0.6 or 0.3. By a threshold of 0.5, or the scorer's own, all of
`c` would be right, and the specialists would win nothing.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.flows.build import run_build
from routeyard.flows.cli import run

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
#: Task → words right of ten by model.
GRADES = {
    "a": {"first": 9, "second": 6, "third": 3},
    "b": {"first": 6, "second": 10, "third": 6},
    "c": {"first": 6, "second": 6, "third": 6},
}
USD = {"first": 0.003, "second": 0.002, "third": 0.001}


def recipe(folder: Path) -> Path:
    questions, answers = [], []
    for i in range(60):
        task = "abc"[i % 3]
        wanted = [f"{word}{i}" for word in WORDS]
        questions.append({"id": str(i), "question": f"Say line {i}.", "answer": " ".join(wanted),
                          "task": task})  # fmt: skip
        for model, right in GRADES[task].items():
            said = [word if k < right else f"x{k}" for k, word in enumerate(wanted)]
            # The source graded question 0 more strictly than ROUGE does: 0.6 against 0.9.
            stored = 0.6 if (i, model) == (0, "first") else right / 10
            answers.append({"id": str(i), "model": model, "output": " ".join(said),
                            "score": stored, "cost_usd": USD[model], "prompt_tokens": 9,
                            "completion_tokens": 20})  # fmt: skip
    for name, rows in (("questions", questions), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields = {"query": "id", "model": "model", "text": "output", "score": "score",
              "cost_usd": "cost_usd", "prompt_tokens": "prompt_tokens",
              "completion_tokens": "completion_tokens"}  # fmt: skip
    written = {
        "name": "strict", "version": "1.0.0",
        "sources": [{"name": "lines", "path": "questions.jsonl", "scorer": "rouge_l",
                     "fields": {"id": "id", "question": "question", "references": "answer",
                                "task": "{{ task }}"}}],
        "pool": {"models": [{"model_id": name, "price_in": 1.0, "price_out": 1.0,
                             "price_date": "2026-01-01"} for name in USD]},
        "collect": {"provider": "recorded",
                    "recorded": [{"path": "answers.jsonl", "fields": fields}]},
        "label": {"default": {"threshold": 0.8, "trust": "rules"}},
        "split": {"train": 0.4, "validation": 0.1, "test": 0.5},
        "release": {"waivers": [{"gate": "metering", "reason": "costs are made up"}]},
    }  # fmt: skip
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(written))
    return path


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strict")
    run_build(str(recipe(folder)), str(folder / "yard"), jobs=1, until="release")
    return folder / "yard"


@pytest.fixture
def release(yard: Path) -> Path:
    return yard / "releases/strict/1.0.0"


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_labels_and_saved_queries(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = pq.read_table(release / "data/labels.parquet").to_pylist()
    assert {round(r["score"], 6) for r in labels if r["correct"]} == {0.9, 1.0}
    assert {round(r["score"], 6) for r in labels if not r["correct"]} == {0.3, 0.6}
    tasks = {q["query_id"]: q["task"]
             for q in pq.read_table(release / "data/queries.parquet").to_pylist()}  # fmt: skip

    def saved(name: str) -> list[dict[str, Any]]:
        return list(asked(capsys, "query", str(release), f"@{name}"))

    assert {tasks[row["query_id"]] for row in saved("unsolved")} == {"c"}
    assert {(row["solved_by"], tasks[row["query_id"]]) for row in saved("hardest")} <= {
        (1, "a"), (1, "b")
    }  # fmt: skip
    assert {r["model_id"]: r["queries"] for r in saved("cheapest_correct")} == {
        "first": 20, "second": 20
    }  # fmt: skip
    paid = saved("cost_of")
    assert {r["model_id"]: (r["correct"], r["usd_per_correct"]) for r in paid} == {
        "first": (20, pytest.approx(0.009)), "second": (20, pytest.approx(0.006)),
        "third": (0, None),
    }  # fmt: skip
    (disputed,) = saved("contested")
    assert disputed["models"] == ["first"]


def test_the_audit_and_the_review_compare_by_it(
    yard: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "audit"
    assert run(["audit", "strict", "--labels", "--workspace", str(yard), "--out", str(out)]) == 0
    with (out / "stored_labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    # 0.6 is right by the 0.5 of stored scores: then nothing would differ.
    assert [(r["model_id"], float(r["stored_score"])) for r in rows] == [("first", 0.6)]
    assert float(rows[0]["regraded_score"]) == pytest.approx(0.9)
    with (out / "stored_accuracy.csv").open() as file:
        stored = {row["model_id"]: row for row in csv.DictReader(file)}
    assert float(stored["third"]["stored"]) == 0
    assert float(stored["second"]["regraded"]) == pytest.approx(20 / 60)
    queue = tmp_path / "queue.csv"
    assert run(["review", "strict", "--workspace", str(yard), "--csv", str(queue)]) == 0
    with queue.open() as file:
        assert [r["model_id"] for r in csv.DictReader(file) if r["why"] == "contested"] == ["first"]


@pytest.mark.usefixtures("without_pages")
def test_certificate_card_and_figures(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    manifest = json.loads((release / "manifest.json").read_text())
    figures = manifest["figures"]["certify"]["certificate"]["figures"]
    assert figures["unsolved_share"]["value"] == pytest.approx(1 / 3)
    assert figures["all_right_share"]["value"] == 0
    # Of the questions that some model gets right the best one covers its own task.
    assert figures["best_covers"]["value"] == pytest.approx(0.5)
    assert "33.3 %" in (release / "README.md").read_text()

    asked(capsys, "evaluate", str(release), "--out", str(out), "--router", "task-map",
          "--router", "best-generalist", "--resamples", "100", "--all")  # fmt: skip
    splits = {r["query_id"]: r["split"]
              for r in pq.read_table(release / "data/splits.parquet").to_pylist()}  # fmt: skip
    test = [q["task"] for q in pq.read_table(release / "data/queries.parquet").to_pylist()
            if splits[q["query_id"]] == "test"]  # fmt: skip
    share = {task: test.count(task) / len(test) for task in "abc"}
    mine = {(r["router"], r["metric"]): r["value"]
            for r in pq.read_table(out / "metrics.parquet").to_pylist()}  # fmt: skip
    assert mine["task-map", "outcome[none_correct]"] == pytest.approx(share["c"])
    assert mine["task-map", "outcome[optimal]"] == pytest.approx(share["a"] + share["b"])
    # `second` is best over all; on task a it has 0.6, which is wrong.
    assert mine["task-map", "won_from_best_single"] == pytest.approx(share["a"])
    (row,) = (r for r in pq.read_table(out / "comparisons.parquet").to_pylist()
              if r["metric"] == "mcnemar[usd]" and r["second"] == "task-map")  # fmt: skip
    assert (row["n10"], row["n01"]) == (0, test.count("a"))
