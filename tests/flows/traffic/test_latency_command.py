"""`routeyard latency` on a log and on a release: percentiles, promises, later hours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from routeyard.datacards.card import render
from routeyard.datacards.files import render as render_files
from routeyard.extensions.traffic.latency import latency_report
from routeyard.flows.cli import run
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.release.build import write_release
from routeyard.schemas import RESPONSES
from tests.support.small_release import RECIPE, SOURCES, tiny_tables


def log(path: Path, n: int = 400, *, slower: float = 0.0) -> Path:
    """Two arms over four hours; the large one is late in 20 %, more so in the last two hours."""
    generator = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for k in range(n):
        hour, arm = 4 * k // n, ("large", "small")[k % 2]
        late = generator.random() < (0.2 + slower * (hour > 1)) and arm == "large"
        rows.append(
            {"session": f"s{k}", "model": arm, "prompt_tokens": 9,
             "latency_s": 4.0 if late else 1.0,
             "timestamp": f"2026-11-01T1{hour}:{k % 60:02}:00Z", "outcome": float(k % 3 > 0)}
        )  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_percentiles_by_arm_and_hour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path / "log.jsonl")
    assert run(["latency", str(path), "--resamples", "200", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["value"] for one in found["groups"]["small"]] == [1, 1, 1]
    assert [one["value"] for one in found["groups"]["large"]] == [1, 4, 4]
    assert run(["latency", str(path), "--by", "hour", "--resamples", "200"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        f"hour 2026-11-01T1{hour}" for hour in range(4)
    ]
    assert run(["latency", str(path), "--by", "moon"]) == 2


def test_promises_are_measured_on_later_hours(tmp_path: Path) -> None:
    found = latency_report(log(tmp_path / "log.jsonl"), limit_s=2.0, resamples=300)
    assert found.promises["small"].kept == "yes"
    assert found.promises["large"].kept == "no"
    assert found.promises["large"].calls == 100  # of 200: the later hours alone
    assert found.promises["large"].excess_s == pytest.approx(2.0)
    # A log has one arm's latency in each call, so no rule can be tested on it.
    assert found.rule is None
    assert "cannot be tested" in found.notes[0]


def test_a_last_call_alone_is_no_later_hour(tmp_path: Path) -> None:
    path = log(tmp_path / "log.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows[:-1]:
        row["timestamp"] = "2026-11-01T10:00:00Z"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    found = latency_report(path, limit_s=2.0, resamples=200)
    assert found.promises["small"].calls > 50
    assert "halves of the questions" in found.notes[0]
    few = [row | {"model": "new"} for row in rows[:1]]
    path.write_text("\n".join(map(json.dumps, [*rows, *few])) + "\n")
    lines = list(latency_report(path, limit_s=2.0, resamples=200).lines())
    assert not [line for line in lines if " nan " in line]


def test_without_latency_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"session": "s", "model": "m", "prompt_tokens": 9}) + "\n")
    with pytest.raises(BadInput, match="no call has a latency"):
        latency_report(path)


@pytest.fixture
def timed_release(tmp_path: Path) -> Path:
    """Four hours of questions; m0 is always right and late on each fifth, m1 is quick."""
    tables = tiny_tables(240)
    rows = tables["responses"].to_pylist()
    for row in rows:
        number = int(row["query_id"][1:], 16)
        late = row["model_id"] == "m0" and number % 5 == 0
        row["latency_s"] = 4.0 if late else 0.6
        row["requested_at"] = f"2026-01-01T0{number // 60}:{number % 60:02}:00Z"
    tables["responses"] = RESPONSES.from_rows(rows)
    done = write_release(
        tables, recipe=RECIPE, root=tmp_path / "releases", render_card=render,
        render_files=render_files, sources=SOURCES,
    )  # fmt: skip
    return done.path


def test_a_rule_on_a_release_is_learned_and_measured_apart(
    timed_release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = latency_report(timed_release, limit_s=2.0, resamples=300)
    assert found.rule is not None
    assert "learned on the earlier hours" in found.rule
    assert found.promises["rule"].kept == "yes"
    # The best arm is late too often for the promise; the rule takes the other.
    assert found.promises["m0"].kept == "no"
    assert found.promises["rule"].accuracy == found.promises["m1"].accuracy
    # What a router takes to decide counts.
    slow = latency_report(timed_release, limit_s=2.0, decision_s=1.5, resamples=300)
    assert slow.promises["rule"].kept == "no"
    assert "even the fastest arm breaks the promise" in (slow.rule or "")
    assert run(["latency", str(timed_release), "--limit", "2", "--resamples", "200"]) == 0
    assert "rule: promise p95 ≤ 2 s: kept" in capsys.readouterr().out
