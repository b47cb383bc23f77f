"""Trajectories of mini-swe-agent and OpenHands: outcomes, costs and cached tokens of each call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import run_import
from routeyard.schemas import STEPS


def imported(name: str, path: Path, tmp_path: Path) -> tuple[list[dict], list[dict]]:
    done = run_import(IMPORTERS.get(name), path, tmp_path / "imports" / name)
    steps = STEPS.check(pq.read_table(done.folder / "steps.parquet"))
    if (Path(__file__).parents[3] / "extensions").is_dir():
        from routeyard.extensions.traffic.replay import audit_steps

        assert audit_steps(steps) == []
    return pq.read_table(done.folder / "responses.parquet").to_pylist(), steps.to_pylist()


def reply(prompt: int, cached: int, at: float) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": 20,
             "prompt_tokens_details": {"cached_tokens": cached}}  # fmt: skip
    return {"role": "assistant", "content": "ls", "extra": {
        "response": {"model": "m-2026", "usage": usage}, "timestamp": at}}  # fmt: skip


def test_mini_swe_agent_with_the_harness_report(tmp_path: Path) -> None:
    source = tmp_path / "runs"
    source.mkdir()
    start = 1.79e9
    messages = [
        {"role": "system", "content": "You fix bugs."}, {"role": "user", "content": "Fix it."},
        reply(1_500, 0, start), {"role": "user", "content": "<returncode>0</returncode>"},
        reply(1_800, 1_408, start + 9),
    ]  # fmt: skip
    for name in ("a__a-1", "b__b-2"):
        told = {
            "info": {"exit_status": "Submitted", "submission": "diff", "config": {"model": {
                "model_name": "openai/m"}}, "model_stats": {"instance_cost": 0.02, "api_calls": 2}},
            "messages": messages, "trajectory_format": "mini-swe-agent-1.1", "instance_id": name,
        }  # fmt: skip
        (source / f"{name}.traj.json").write_text(json.dumps(told))
    report = {"resolved_ids": ["a__a-1"], "completed_ids": ["a__a-1", "b__b-2"]}
    (source / "report.json").write_text(json.dumps(report))
    answers, steps = imported("mini_swe_agent", source, tmp_path)
    first, second = sorted(answers, key=lambda row: row["query"])
    assert (first["score"], second["score"], first["cost_usd"]) == (1.0, 0.0, 0.02)
    assert (first["model"], first["calls"], first["text"]) == ("openai/m", 2, "diff")
    assert (first["prompt_tokens"], first["cache_read_tokens"]) == (3_300, 1_408)
    assert [row["prompt_tokens"] for row in steps] == [1_500, 1_800] * 2
    assert [row["parent"] for row in steps[:2]] == [None, 0]
    assert steps[0]["requested_at"].startswith("2026-09")


def test_mini_swe_agent_without_a_report_says_nothing_of_success(tmp_path: Path) -> None:
    told = {"info": {}, "messages": [{"role": "user", "content": "Fix."}, reply(9, 0, 1.79e9)]}
    (tmp_path / "c__c-3.traj.json").write_text(json.dumps(told))
    answers, steps = imported("mini_swe_agent", tmp_path / "c__c-3.traj.json", tmp_path)
    assert (answers[0]["query"], answers[0]["score"], answers[0]["model"]) == (
        "c__c-3", None, "m-2026",
    )  # fmt: skip
    assert steps[0]["outcome"] is None


def test_openhands(tmp_path: Path) -> None:
    usages = [
        {"model": "m", "prompt_tokens": 2_000, "completion_tokens": 50, "cache_read_tokens": 0,
         "cache_write_tokens": 1_900, "response_id": "r0"},
        {"model": "m", "prompt_tokens": 2_600, "completion_tokens": 30, "cache_read_tokens": 1_900,
         "cache_write_tokens": 600, "response_id": "r1"},
    ]  # fmt: skip
    latencies = [{"response_id": "r1", "latency": 2.5}, {"response_id": "r0", "latency": 1.5}]
    row = {
        "instance_id": "a__a-1", "instruction": "Fix it.",
        "metadata": {"llm_config": {"model": "m"}},
        "metrics": {"accumulated_cost": 0.03, "token_usages": usages,
                    "response_latencies": latencies},
        "test_result": {"git_patch": "diff"}, "report": {"resolved": True}, "error": None,
    }  # fmt: skip
    failed = row | {"instance_id": "b__b-2", "error": "runtime lost", "report": None}
    path = tmp_path / "output.jsonl"
    path.write_text("\n".join(map(json.dumps, [row, failed, {"note": 1}])) + "\n")
    answers, steps = imported("openhands", path, tmp_path)
    first, second = sorted(answers, key=lambda one: one["query"])
    assert (first["score"], first["cost_usd"], first["latency_s"]) == (1.0, 0.03, 4.0)
    assert (first["cache_read_tokens"], first["cache_write_tokens"]) == (1_900, 2_500)
    assert (second["status"], second["score"]) == ("error", None)
    assert [one["latency_s"] for one in steps[:2]] == [1.5, 2.5]
    assert [one["action"] for one in steps[:2]] == ["call", "answer"]
