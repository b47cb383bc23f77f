"""Recorded agents: outcomes, trials and steps of τ-bench, MINT, Inspect and OpenTelemetry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from routeyard.flows.audits import audit_path
from routeyard.pipelines.audit.metering import audit
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.usage import usage_of
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.agents import TIERS
from routeyard.pipelines.ingest.importers.write import run_import
from routeyard.schemas import MODELS, RESPONSES, STEPS

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "be kind"},
    {"role": "user", "content": "book a flight"},
    {"role": "assistant", "content": None,
     "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]},
    {"role": "tool", "content": "HAT136"},
    {"role": "assistant", "content": "booked"},
]  # fmt: skip


def imported(name: str, path: Path, tmp_path: Path) -> tuple[list[dict], list[dict], Any]:
    done = run_import(IMPORTERS.get(name), path, tmp_path / "imports" / name)
    steps = pq.read_table(done.folder / "steps.parquet")
    STEPS.check(steps)
    answers = pq.read_table(done.folder / "responses.parquet").to_pylist()
    return answers, steps.to_pylist(), done


def test_tau_bench(tmp_path: Path) -> None:
    rows = [
        {"task_id": 7, "trial": trial, "reward": float(trial), "traj": TALK,
         "info": {"task": {"instruction": "You want a flight."}}}
        for trial in (0, 1)
    ]  # fmt: skip
    path = tmp_path / "gpt-4o-airline.json"
    path.write_text(json.dumps(rows))
    answers, steps, done = imported("tau_bench", path, tmp_path)
    assert [(a["query"], a["sample"], a["score"], a["calls"], a["text"]) for a in answers] == [
        ("airline/7", 0, 0.0, 2, "booked"), ("airline/7", 1, 1.0, 2, "booked"),
    ]  # fmt: skip
    assert [(s["sample"], s["step"], s["action"], s["parent"]) for s in steps] == [
        (0, 0, "call", None), (0, 1, "answer", 0), (1, 0, "call", None), (1, 1, "answer", 0),
    ]  # fmt: skip
    # No usage is recorded: unknown, and nothing stands in for it.
    assert {s["prompt_tokens"] for s in steps} == {None}
    assert steps[0]["tools_called"] == ["find"]
    # The same prompt of another trial has the same hash.
    assert steps[0]["prefix_hash"] == steps[2]["prefix_hash"] != steps[1]["prefix_hash"]
    assert "names no model" in done.recipe.read_text()


def test_tau2_bench(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 9,
             "prompt_tokens_details": {"cached_tokens": 64}}  # fmt: skip
    talk = [
        {"role": "assistant", "content": "Hi! How can I help?"},  # the harness's own greeting
        {"role": "user", "content": "a card", "usage": {"prompt_tokens": 5}},
        {"role": "assistant", "content": "this one", "raw_data": {"usage": usage},
         "generation_time_seconds": 1.5, "timestamp": "2026-06-29T18:44:00"},
    ]  # fmt: skip
    simulation = {"task_id": "t1", "trial": 0, "messages": talk, "reward_info": {"reward": 1.0},
                  "termination_reason": "user_stop"}  # fmt: skip
    broken = simulation | {"trial": 1, "termination_reason": "infrastructure_error"}
    path = tmp_path / "results.json"
    path.write_text(
        json.dumps({"info": {"agent_info": {"llm": "m-1"}}, "simulations": [simulation, broken],
                    "tasks": [{"id": "t1", "user_scenario": {"instructions": "ask"}}]})
    )  # fmt: skip
    answers, steps, _ = imported("tau_bench", path, tmp_path)
    assert [(a["model"], a["score"], a["status"]) for a in answers] == [
        ("m-1", 1.0, None), ("m-1", None, "error"),
    ]  # fmt: skip
    (one, _) = steps
    assert (one["prompt_tokens"], one["cache_read_tokens"], one["latency_s"]) == (90, 64, 1.5)


def test_opentelemetry(tmp_path: Path) -> None:
    def span(start: int, **told: Any) -> dict[str, Any]:
        kinds = {int: "intValue", float: "doubleValue", str: "stringValue"}
        listed = [
            {"key": key.replace("__", "."),
             "value": {kinds[type(value)]: str(value) if isinstance(value, int) else value}}
            for key, value in told.items()
        ]  # fmt: skip
        return {"traceId": "t1", "spanId": str(start), "attributes": listed,
                "startTimeUnixNano": str(start * 10**9),
                "endTimeUnixNano": str(start * 10**9 + 5 * 10**8)}  # fmt: skip

    asked = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m"}
    spans = [
        span(3, **asked, gen_ai__usage__input_tokens=120, gen_ai__usage__output_tokens=8,
             **{"gen_ai__usage__cache_read__input_tokens": 90}),
        span(1, gen_ai__operation__name="invoke_agent", gen_ai__request__model="m",
             gen_ai__evaluation__score__value=1.0),
        span(2, **asked, gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=9),
    ]  # fmt: skip
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n")
    answers, steps, done = imported("otel", path, tmp_path)
    (answer,) = answers
    assert (answer["prompt_tokens"], answer["score"], answer["calls"]) == (220, 1.0, 2)
    assert [(s["prompt_tokens"], s["cache_read_tokens"], s["latency_s"]) for s in steps] == [
        (100, None, 0.5), (120, 90, 0.5),
    ]  # fmt: skip
    assert done.left_out == {"spans that are no calls of a model": 1}
    # Spans as a console exporter prints them.
    line = {"context": {"trace_id": "0x1"}, "start_time": "2026-11-01T10:00:00Z",
            "attributes": {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 7},
            }  # fmt: skip
    other = tmp_path / "console.jsonl"
    other.write_text(json.dumps(line) + "\n")
    done = run_import(IMPORTERS.get("otel"), other, tmp_path / "imports" / "console")
    assert pq.read_table(done.folder / "steps.parquet").column("prompt_tokens").to_pylist() == [7]


def test_mint(tmp_path: Path) -> None:
    base = tmp_path / "outputs"
    for task, success in (("gsm8k", True), ("hotpotqa", False)):
        folder = base / "claude-2/F=None/max5_p2+tool+cd/reasoning" / task
        folder.mkdir(parents=True)
        state = {"history": TALK, "success": success, "latest_output": {"success": False},
                 "token_counter": {}, "terminate_reason": "max_steps"}  # fmt: skip
        row = {"state": state, "task": {"task_id": 0, "prompt": "1 + 1?", "reference": "2"}}
        (folder / "results.jsonl").write_text(json.dumps(row) + "\n")
    answers, steps, _ = imported("mint", base, tmp_path)
    # Ids collide between tasks, and the outcome is not that of the latest output.
    assert [(a["query"], a["model"], a["score"]) for a in answers] == [
        ("gsm8k/0", "claude-2", 1.0), ("hotpotqa/0", "claude-2", 0.0),
    ]  # fmt: skip
    assert {a["prompt_tokens"] for a in answers} == {None}
    assert len(steps) == 4


def test_twin_router_bench(tmp_path: Path) -> None:
    rows = [
        {"id": f"swe-1-{step}", "benchmark": "swebench", "instance_id": "swe-1", "step_index": step,
         "total_steps": 2, "messages": [{"role": "user", "content": f"step {step}"}],
         "target_tier": ("low", "mid_high")[step], "target_tier_id": (0, 2)[step]}
        for step in (0, 1)
    ]  # fmt: skip
    path = tmp_path / "question_bank.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    importer = IMPORTERS.get("twin_router_bench")
    done = run_import(importer, path, tmp_path / "imports")
    answers = pq.read_table(done.folder / "responses.parquet").to_pylist()
    scores = {(a["query"], a["model"]): a["score"] for a in answers}
    assert [scores["swe-1-0", tier] for tier in TIERS] == [1.0, 1.0, 1.0, 1.0]
    assert [scores["swe-1-1", tier] for tier in TIERS] == [0.0, 0.0, 1.0, 1.0]
    other = tmp_path / "other" / "question_bank.jsonl"
    other.parent.mkdir()
    other.write_text(json.dumps(rows[0] | {"target_tier": "high"}) + "\n")
    with pytest.raises(SourceError, match="expected a tier"):
        run_import(importer, other, tmp_path / "others")
    assert TIERS == ("low", "mid", "mid_high", "high")


def test_the_audit_reads_what_was_imported(tmp_path: Path) -> None:
    test_mint(tmp_path)
    page = audit_path(tmp_path / "imports" / "mint")
    assert page.of == "the import"
    assert not [one for one in page.findings if one.severity == "grave"]


@pytest.mark.data
def test_real_trajectories_import_with_the_published_outcomes(data: Path, tmp_path: Path) -> None:
    source = data / "trajectories/tau_bench_airline_gpt4o.parquet"
    answers, steps, _ = imported("tau_bench", source, tmp_path)
    rewards = pq.read_table(source).column("reward").to_pylist()
    assert len(answers) == 200
    assert sum(a["score"] for a in answers) == sum(rewards)
    assert {a["sample"] for a in answers} == {0, 1, 2, 3}
    assert len(steps) == sum(a["calls"] for a in answers) > 1_000
    mint, _, _ = imported("mint", data / "shapes/mint_multiturn", tmp_path)
    means = {
        (model, task): sum(scores) / len(scores)
        for model in ("claude-2", "gpt-3.5-turbo-0613")
        for task in ("gsm8k", "hotpotqa")
        if (scores := [a["score"] for a in mint
                       if a["model"] == model and a["query"].startswith(task)])
    }  # fmt: skip
    assert {key: round(value, 6) for key, value in means.items()} == {
        ("claude-2", "gsm8k"): 0.854167, ("claude-2", "hotpotqa"): 0.465116,
        ("gpt-3.5-turbo-0613", "gsm8k"): 0.4375, ("gpt-3.5-turbo-0613", "hotpotqa"): 0.27907,
    }  # fmt: skip


@pytest.mark.data
def test_inspects_events_are_steps(data: Path, tmp_path: Path) -> None:
    logs = data / "shapes/inspect_logs/tests/analysis/test_logs"
    answers, steps, _ = imported(
        "inspect", logs / "2025-05-12T20-27-36-04-00_browser.json", tmp_path
    )
    (answer,) = answers
    assert (answer["calls"], answer["prompt_tokens"]) == (5, 15_235)
    assert sum(s["prompt_tokens"] for s in steps) == 15_235
    assert sum(s["cache_read_tokens"] for s in steps) == 9_088
    assert [s["parent"] for s in steps] == [None, 0, 1, 2, 3]
    assert steps[0]["tools_called"] == ["web_browser_go"]
    assert {s["outcome"] for s in steps} == {1.0}


def test_providers_that_leave_cached_tokens_out_are_told_by_the_total() -> None:
    openai = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105,
              "input_tokens_cache_read": 90}  # fmt: skip
    assert usage_of(openai).prompt == 100
    assert usage_of(openai | {"input_tokens": 10}).prompt == 100


def test_tokens_of_several_calls_are_not_compared_with_the_last_text() -> None:
    row = {"query_id": "q", "model_id": "m", "sample": 0, "text": "yes", "status": "ok",
           "prompt_tokens": 9_000, "completion_tokens": 800, "attempts": 1}  # fmt: skip
    models = MODELS.from_rows([{"model_id": "m", "kind": "real", "simulated": False}])

    def found(calls: int | None) -> set[str]:
        table = RESPONSES.from_rows([row | {"calls": calls}])
        return {one.check for one in audit(table, models)} - {"price_unknown"}

    assert found(None) == {"implausible_count"}
    assert found(1) == {"implausible_count"}
    assert found(12) == set()
