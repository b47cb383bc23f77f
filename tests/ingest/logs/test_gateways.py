"""Exports of gateways and outputs of batches, each record by hand after its documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.ingest.logs import read_log

CHAT = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55,
        "prompt_tokens_details": {"cached_tokens": 32}}  # fmt: skip
MESSAGES = [{"role": "user", "content": "hello"}]
RECORDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "helicone": (
        "helicone",
        {"request_id": "r", "request_created_at": "2026-11-01T10:00:00.000Z", "delay_ms": 800,
         "request_model": "gpt-x", "response_model": "gpt-x-2026", "provider": "OPENAI",
         "prompt_tokens": 50, "completion_tokens": 5, "prompt_cache_read_tokens": 32,
         "costUSD": 0.25, "response_status": 200,
         "request_properties": {"Helicone-Session-Id": "s"}},
        {"query_id": "s", "acted_by": "gpt-x-2026", "cache_read_tokens": 32, "cost_usd": 0.25,
         "latency_s": 0.8, "status": "ok"},
    ),
    "portkey": (  # its costs are cents
        "portkey",
        {"id": "p", "created_at": "2026-11-01T10:00:00Z", "ai_org": "openai", "ai_model": "gpt-x",
         "req_units": 50, "res_units": 5, "total_units": 55, "cost": 25.0, "cost_currency": "USD",
         "response_time": 800, "response_status_code": 429, "trace_id": "s", "is_success": 0,
         "request": {"body": {"model": "gpt-x", "messages": MESSAGES}},
         "response": {"body": {"usage": CHAT}}},
        {"query_id": "s", "acted_by": "gpt-x", "cache_read_tokens": 32, "cost_usd": 0.25,
         "latency_s": 0.8, "status": "error"},
    ),
    "openai batch": (
        "batch",
        {"id": "batch_req_1", "custom_id": "q1", "error": None,
         "response": {"status_code": 200, "request_id": "x",
                      "body": {"created": 1793527200, "model": "gpt-x", "usage": CHAT,
                               "choices": [{"finish_reason": "stop"}]}}},
        {"query_id": "q1", "acted_by": "gpt-x", "cache_read_tokens": 32, "cost_usd": None,
         "requested_at": "2026-11-01T10:00:00+00:00", "status": "ok"},
    ),
    "anthropic batch": (
        "batch",
        {"custom_id": "q1", "result": {"type": "succeeded", "message": {
            "model": "claude-x", "stop_reason": "end_turn",
            "usage": {"input_tokens": 18, "cache_read_input_tokens": 32, "output_tokens": 5,
                      "cache_creation_input_tokens": 0}}}},
        {"query_id": "q1", "acted_by": "claude-x", "cache_read_tokens": 32, "prompt_tokens": 50},
    ),
    "litellm callback": (
        "litellm",
        {"id": "c", "trace_id": "s", "call_type": "acompletion", "response_cost": 0.25,
         "startTime": 1793527200.5, "endTime": 1793527201.3, "completionStartTime": 1793527201.0,
         "model": "gpt-x", "model_group": "smart", "prompt_tokens": 50, "completion_tokens": 5,
         "total_tokens": 55, "status": "failure", "custom_llm_provider": "openai",
         "metadata": {"usage_object": CHAT}, "messages": MESSAGES},
        {"query_id": "s", "acted_by": "gpt-x", "cache_read_tokens": 32, "cost_usd": 0.25,
         "latency_s": pytest.approx(0.8), "status": "error"},
    ),
    "google": (
        "google",
        {"session_id": "s", "timestamp": "2026-11-01T10:00:00Z", "request": {"model": "g"},
         "response": {"modelVersion": "g-2026", "usageMetadata": {
             "promptTokenCount": 50, "cachedContentTokenCount": 32, "candidatesTokenCount": 5}}},
        {"query_id": "s", "acted_by": "g-2026", "cache_read_tokens": 32},
    ),
    "llama.cpp": (
        "usage",
        {"session_id": "s", "timestamp": "2026-11-01T10:00:00Z", "request": {"model": "m"},
         "response": {"model": "m", "usage": {"prompt_tokens": 50, "completion_tokens": 5},
                      "timings": {"cache_n": 32, "prompt_n": 18, "predicted_n": 5}}},
        {"query_id": "s", "cache_read_tokens": 32},
    ),
    "perplexity": (
        "usage",
        {"session_id": "s", "request": {"model": "sonar"},
         "response": {"model": "sonar", "usage": {
             "prompt_tokens": 50, "completion_tokens": 5, "num_search_queries": 1,
             "cost": {"request_cost": 0.2, "total_cost": 0.25}}}},
        {"query_id": "s", "cost_usd": 0.25, "completion_tokens": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_of(name: str, tmp_path: Path) -> None:
    form, record, wanted = RECORDS[name]
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(record) + "\n")
    log = read_log(path)
    assert dict(log.formats) == {form: 1}
    (row,) = log.steps.to_pylist()
    assert {"prompt_tokens": 50, "completion_tokens": 5, **wanted}.items() <= row.items()


def test_a_batch_says_that_its_prices_are_others(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(RECORDS["openai batch"][1]) + "\n")
    assert any("1 calls are of a batch" in doubt for doubt in read_log(path).doubts)
