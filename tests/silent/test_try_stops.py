"""`try` and `init`: nothing that the audit calls defective is released without a word."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

Call = Callable[..., Any]


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def answer(i: int, model: str, right: bool, **more: Any) -> dict[str, Any]:
    return {
        "id": f"q{i}", "question": f"What is {i} times three?", "model": model,
        "output": str(3 * i if right else 1), "score": int(right), **more,
    }  # fmt: skip


def outages(path: Path) -> Path:
    """`flaky` is right on 60 % of what it answered; a quarter of its calls timed out."""
    rows = [answer(i, "steady", i % 5 < 3, status="success") for i in range(60)]
    for i in range(60):
        lost = i % 4 == 3
        one = answer(i, "flaky", i % 5 < 3, status="success")
        rows.append({**one, "output": "", "score": 0, "status": "timeout"} if lost else one)
    return table(path, rows)


def labels(yard: Path) -> dict[str, list[float | None]]:
    """Model → its labels in the one release of a workspace."""
    file = next(yard.rglob("releases/*/*/**/labels*.parquet"))
    found: dict[str, list[float | None]] = {}
    for row in pq.read_table(file).to_pylist():
        found.setdefault(row["model_id"], []).append(row["score"])
    return found


def test_defective_answers_stop_try_until_they_are_accepted(tmp_path: Path, call: Call) -> None:
    answers, yard = outages(tmp_path / "runs.csv"), tmp_path / "yard"
    words = ["try", answers, "--no-open", "--workspace", yard]
    done = call(*words)
    assert done.returncode == 3, done.stderr
    # Trap: it said `defective` and made a page with timeouts as wrong answers.
    assert "--accept infrastructure_errors" in done.stderr
    assert "15 of 60 answers" in done.stderr
    assert not list(yard.rglob("releases"))
    done = call(*words, "--accept", "infrastructure_errors")
    assert done.returncode == 0, done.stderr
    (page,) = yard.rglob("pages/runs/1.0.0/index.html")
    assert "15 of 60 answers are errors of the infrastructure" in page.read_text()
    assert None not in labels(yard)["flaky"]
    # A kind that does not exist is no way to waive anything.
    assert call(*words, "--accept", "infrastructure_error").returncode == 2


def test_init_leaves_out_scored_timeouts_and_names_what_it_waives(
    tmp_path: Path, call: Call
) -> None:
    recipe, yard = tmp_path / "r.yaml", tmp_path / "yard"
    done = call("init", recipe, "--from", outages(tmp_path / "runs.csv"))
    assert done.returncode == 0, done.stderr
    assert "15 `timeout`" in done.stdout
    written = yaml.safe_load(recipe.read_text())
    # Trap: one waiver of all metering, whatever it would have found.
    gates = {one["gate"]: one["reason"] for one in written["release"]["waivers"]}
    assert sorted(gates) == ["metering:price_unknown", "metering:usage_missing"]
    assert all("105 of 120" in reason for reason in gates.values())
    assert "waived: metering:usage_missing: 105 of 120" in done.stdout
    written["curate"] = []
    recipe.write_text(yaml.safe_dump(written))
    assert call("build", recipe, "--workspace", yard).returncode == 0
    flaky = labels(yard)["flaky"]
    assert flaky.count(None) == 15
    assert sum(one == 1 for one in flaky) == sum(i % 5 < 3 for i in range(60) if i % 4 != 3)


def test_no_waiver_without_a_finding(tmp_path: Path, call: Call) -> None:
    rows = [
        {**answer(i, m, i % 2 == k), "cost_usd": 0.001 + i / 1e6, "prompt_tokens": 12,
         "completion_tokens": 2 + i % 9}
        for k, m in enumerate("ab") for i in range(40)
    ]  # fmt: skip
    recipe = tmp_path / "r.yaml"
    assert call("init", recipe, "--from", table(tmp_path / "a.csv", rows)).returncode == 0
    waived = yaml.safe_load(recipe.read_text())["release"].get("waivers", [])
    assert not {"metering", "metering:usage_missing", "metering:price_unknown"} & {
        one["gate"] for one in waived
    }


@pytest.mark.parametrize("column", ["attempt", "retry", "try"])
def test_retries_are_attempts_of_one_answer(column: str, tmp_path: Path, call: Call) -> None:
    rows = []
    for i in range(30):
        rows.append(answer(i, "calm", i % 3 == 0, **{column: 1, "cost_usd": 0.01}))
        if i % 2:
            rows.append(answer(i, "again", True, **{column: 1, "cost_usd": 0.01}))
            continue
        lost = {**answer(i, "again", False, **{column: 1, "cost_usd": 0.01}), "output": ""}
        rows += [answer(i, "again", True, **{column: 2, "cost_usd": 0.01}), lost]
    done = call("init", tmp_path / "r.yaml", "--from", table(tmp_path / "runs.csv", rows))
    assert done.returncode == 0, done.stderr
    kept = pq.read_table(tmp_path / "r-data" / "responses.parquet").to_pylist()
    again = [one for one in kept if one["model"] == "again"]
    # Trap: both were samples, so that its accuracy was 100 % of one half and 50 % of the other.
    assert len(again) == 30
    assert {one["score"] for one in again} == {1.0}
    # What the lost attempts cost was paid as well.
    assert sum(one["cost_usd"] for one in again) == pytest.approx(0.45)


def test_a_count_of_attempts_numbers_none(tmp_path: Path, call: Call) -> None:
    rows = [
        answer(i, m, (i + run) % 2 == 0, num_attempts=1 + (i + run) % 2)
        for m in "xy" for i in range(30) for run in range(2 if i else 1)
    ]  # fmt: skip
    done = call("init", tmp_path / "r.yaml", "--from", table(tmp_path / "runs.csv", rows))
    assert done.returncode == 0, done.stderr
    # Trap: the run that needed fewer attempts was an attempt of the other one, and was dropped.
    assert pq.read_metadata(tmp_path / "r-data" / "responses.parquet").num_rows == len(rows)


def test_what_an_earlier_attempt_cost_is_said_to_be_unknown(tmp_path: Path, call: Call) -> None:
    rows = []
    for i in range(30):
        if i % 3 == 0:
            rows.append({**answer(i, "x", False, attempt=1, cost_usd=""), "output": ""})
        rows.append(answer(i, "x", True, attempt=2 - bool(i % 3), cost_usd=0.01))
    done = call("init", tmp_path / "r.yaml", "--from", table(tmp_path / "runs.csv", rows))
    assert "10 earlier attempts state no cost" in done.stdout


@pytest.mark.parametrize("turned", [False, True])
def test_two_texts_under_one_id_are_two_questions(turned: bool, tmp_path: Path, call: Call) -> None:
    texts = ("What is {} plus one?", "Name a prime above {}.")
    rows = [
        {"id": i, "question": text.format(i), "model": m, "output": "7", "score": (i + k) % 2}
        for m in ("x", "y") for k, text in enumerate(texts) for i in range(20)
    ]  # fmt: skip
    path = table(tmp_path / "runs.csv", rows[::-1] if turned else rows)
    done = call("init", tmp_path / "r.yaml", "--from", path)
    assert done.returncode == 0, done.stderr
    assert "20 ids of 'id' have several texts" in done.stdout
    asked = pq.read_table(tmp_path / "r-data" / "queries.parquet").to_pylist()
    assert {one["question"] for one in asked} == {row["question"] for row in rows}
    answers = pq.read_table(tmp_path / "r-data" / "responses.parquet").to_pylist()
    # Trap: the second text's answers were further samples of the first text.
    assert {one.get("sample", 0) for one in answers} == {0}
    by_id = {one["id"]: one["question"] for one in asked}
    assert all(by_id[one["query"]] == one["prompt"] for one in answers)


def test_init_names_ids_that_come_twice(tmp_path: Path, call: Call) -> None:
    rows = [
        {"id": min(i, 8), "question": f"What is {i} + {i}?", "answer": 2 * i} for i in range(12)
    ]
    done = call("init", tmp_path / "r.yaml", "--from", table(tmp_path / "q.csv", rows), "--json")
    told = json.loads(done.stdout)
    assert any("4 share one with another row (such as '8')" in one for one in told["lacks"])
