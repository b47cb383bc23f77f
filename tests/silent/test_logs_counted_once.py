"""Logs: one call is one call, on its own day, and `recorded` is what the log itself states."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.ingest.logs import read_log

Call = Callable[..., Any]
PRICES = {
    "models": [
        {"model_id": m, "provider": "openai", "price_in": p, "price_out": p, "price_cache_read": p}
        for m, p in (("large", 10.0), ("small", 1.0))
    ]
}


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def prices(tmp_path: Path) -> Path:
    return lines(tmp_path / "prices.json", [PRICES])


def logged(number: int, day: int, *texts: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": "system", "content": "Classify."}]
    messages += [{"role": roles[k % 2], "content": text} for k, text in enumerate(texts)]
    usage = {"prompt_tokens": 1_000, "completion_tokens": 10}
    return {
        "id": f"c{number}", "timestamp": f"2026-11-{day:02d}T10:{number % 60:02d}:00Z",
        "request": {"model": "large", "messages": messages},
        "response": {"model": "large", "usage": usage}, **more,
    }  # fmt: skip


@pytest.mark.extensions
@pytest.mark.parametrize("order", [1, -1])
def test_the_same_prompt_again_is_another_trajectory_on_its_own_day(
    order: int, tmp_path: Path, call: Call
) -> None:
    rows = [logged(20 * day + k, day + 1, "spam?") for day in range(10) for k in range(20)]
    # One of them goes on the next day: that alone is a second call of its trajectory.
    rows.append(logged(900, 11, "spam?", "No.", "Why?"))
    log = lines(tmp_path / "log.jsonl", rows[::order])
    words = ["--router", "always:small", "--pool", prices(tmp_path), "--resamples", 100, "--json"]
    done = call("shadow", log, *words)
    found = json.loads(done.stdout)
    # Trap: all 200 were one trajectory, shown on the first day.
    assert (found["trajectories"], found["steps"]) == (200, 201)
    days = {day["day"]: day["trajectories"] for day in found["savings"]["days"]}
    assert days == {f"2026-11-{day:02d}": 20 for day in range(1, 11)}


def span(number: int, parent: int | None, start: int, trace: str = "t", **told: Any) -> Any:
    named = {"operation.name": "chat", "request.model": "m"} | told
    return {
        "traceId": trace, "spanId": f"{number:016x}",
        "parentSpanId": "" if parent is None else f"{parent:016x}",
        "startTimeUnixNano": str((1_790_000_000 + start) * 10**9),
        "endTimeUnixNano": str((1_790_000_001 + start) * 10**9),
        "attributes": [{"key": f"gen_ai.{k}", "value": {"stringValue": str(v)}}
                       for k, v in named.items()],
    }  # fmt: skip


@pytest.mark.extensions
def test_a_call_span_around_a_call_span_is_one_call(tmp_path: Path, call: Call) -> None:
    used = {"usage.input_tokens": 60, "usage.output_tokens": 7}
    spans = [
        # A framework, an HTTP client and the provider's client around one call.
        span(1, None, 0, **used), span(2, 1, 0, **{"operation.name": "", "request.model": ""}),
        span(3, 2, 0, **used),
        # A tool that asks a model makes another call.
        span(4, 3, 1, **{"operation.name": "execute_tool", "request.model": ""}),
        span(5, 4, 1, **{"usage.input_tokens": 8, "usage.output_tokens": 1}),
        # Only the outer span knows the usage of this call; it was exported twice.
        span(1, None, 2, "u", **used), span(2, 1, 2, "u"), span(2, 1, 2, "u"),
    ]  # fmt: skip
    for order in (1, -1):
        document = {"resourceSpans": [{"scopeSpans": [{"spans": spans[::order]}]}]}
        path, yard = tmp_path / "spans.json", tmp_path / f"yard{order}"
        path.write_text(json.dumps(document))
        done = call("import", "otel", path, "--workspace", yard)
        assert "3 steps" in done.stdout, done.stdout + done.stderr
        told = json.loads(
            call("replay", yard / "imports" / "otel", "--pool", prices(tmp_path), "--json").stdout
        )
        assert sum(one["prompt_tokens"] for one in told["costs"]) == 128


def test_spans_without_texts_are_no_answers_and_no_crash(tmp_path: Path, call: Call) -> None:
    spans = [span(1, None, 0, **{"usage.input_tokens": 60, "usage.output_tokens": 7})]
    path = tmp_path / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    assert call("import", "otel", path, "--workspace", tmp_path).returncode == 0
    done = call("build", tmp_path / "imports" / "otel" / "recipe.yaml", "--workspace", tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "nothing to grade" in done.stderr


@pytest.mark.extensions
def test_recorded_is_the_logs_own_cost(tmp_path: Path, call: Call) -> None:
    rows = [
        {"request_id": f"r{k}", "call_type": "acompletion", "spend": 0.004, "prompt_tokens": 1_000,
         "completion_tokens": 10, "startTime": f"2026-11-01T10:{k:02d}:00Z",
         "endTime": f"2026-11-01T10:{k:02d}:02Z", "model": "large", "session_id": f"s{k}",
         "metadata": {"additional_usage_values": {"prompt_tokens_details": {"cached_tokens": 640}}}}
        for k in range(20)
    ]  # fmt: skip
    log, pool = lines(tmp_path / "log.jsonl", rows), prices(tmp_path)
    done = call("replay", log, "--pool", pool, "-p", "recorded", "-p", "always:large", "--json")
    found = json.loads(done.stdout)
    costs = {one["policy"]: one["usd"] for one in found["costs"]}
    assert costs["recorded"] == pytest.approx(0.08)
    assert costs["recorded, modelled"] == pytest.approx(20 * 1_010 * 10 / 1e6)
    # Savings compare modelled with modelled: the same arm saves nothing.
    assert found["costs"][-1]["saved"][0] == pytest.approx(0)
    assert found["check"]["recorded"] == 20 * 640
    shadow = call("shadow", log, "--router", "always:large", "--pool", pool, "--json")
    total = json.loads(shadow.stdout)["savings"]["total"]
    assert (total["recorded"], total["modelled"]) == pytest.approx((0.08, 0.202))
    # A log without costs of its own has no recorded figure.
    for row in rows:
        del row["spend"]
    lines(log, rows)
    done = call("replay", log, "--pool", pool, "-p", "recorded", "--json")
    assert [one["policy"] for one in json.loads(done.stdout)["costs"]] == ["recorded, modelled"]


@pytest.mark.extensions
def test_attempts_in_a_log_are_one_call(tmp_path: Path, call: Call) -> None:
    rows = [
        {"id": f"c{k}", "timestamp": f"2026-11-01T10:00:{10 * k + n:02d}Z", "model": "large",
         "prompt_tokens": 1_000, "completion_tokens": 10 * (n == 2), "attempt": n,
         "status": "ok" if n == 2 else "error", "cost_usd": 0.01}
        for k in range(5) for n in (1, 2)
    ]  # fmt: skip
    log = lines(tmp_path / "log.jsonl", rows[::-1])
    done = call("replay", log, "--pool", prices(tmp_path), "-p", "recorded", "--json")
    found = json.loads(done.stdout)
    assert (found["trajectories"], found["steps"]) == (5, 5)
    assert found["costs"][0]["usd"] == pytest.approx(0.1)
    # Each attempt has an id of its own: a call that failed, with the same prompt.
    first = logged(1, 1, "a", attempt=1, status="RateLimitError")
    lines(log, [logged(2, 1, "a", attempt=2, status="ok"), first])
    done = call("replay", log, "--pool", prices(tmp_path), "-p", "recorded", "--json")
    assert json.loads(done.stdout)["steps"] == 1


@pytest.mark.parametrize(
    ("timed", "first", "took"), [(True, 0.5, 3.0), (False, 0.5, 2.5), (False, 0.0, 2.0)]
)
def test_a_call_that_was_sent_again_took_as_long_as_its_user_waited(
    tmp_path: Path, timed: bool, first: float, took: float
) -> None:
    rows = [
        {"id": "c", "model": "large", "prompt_tokens": 9, "completion_tokens": 2, "attempt": n,
         "latency_s": seconds} | ({"timestamp": f"2026-11-01T10:00:0{n}Z"} if timed else {})
        for n, seconds in ((1, first), (2, 2.0))
    ]  # fmt: skip
    log = read_log(lines(tmp_path / "log.jsonl", rows))
    assert log.steps["latency_s"].to_pylist() == [took]


def test_calls_with_the_id_of_another_are_named(tmp_path: Path) -> None:
    rows = [{"id": f"c{k % 3}", "model": "large", "prompt_tokens": 9, "completion_tokens": 2}
            for k in range(5)]  # fmt: skip
    log = read_log(lines(tmp_path / "log.jsonl", rows))
    assert any(doubt.startswith("2 calls have the id of another") for doubt in log.doubts)
    log = read_log(lines(tmp_path / "log.jsonl", rows[:3]))
    assert not any("the id of another" in doubt for doubt in log.doubts)


@pytest.mark.extensions
def test_calls_that_failed_are_no_short_answers(tmp_path: Path) -> None:
    from routeyard.extensions.traffic.compare import replay_steps

    rows = [
        {"id": f"{arm}{k}", "session": f"{arm}{k}", "model": arm, "prompt_tokens": 100,
         "completion_tokens": 40 * (k > 4 or arm == "large"),
         "timestamp": f"2026-11-01T10:0{k}:00Z",
         "status": "ok" if k > 4 or arm == "large" else "error"}
        for k in range(10) for arm in ("small", "large")
    ]  # fmt: skip
    log = lines(tmp_path / "log.jsonl", rows)
    found = replay_steps(log, ["always:small"], pool=prices(tmp_path), resamples=50)
    # Ten calls of the large arm, of 40 tokens each; not of 20, the mean with five failed ones.
    assert found.costs[0].usd == pytest.approx((20 * 100 + 5 * 40 + 10 * 40) / 1e6)
    assert any(said.startswith("5 calls failed") for said in found.assumptions)


@pytest.mark.extensions
def test_rows_in_errors_are_counted_from_1(tmp_path: Path, call: Call) -> None:
    rows = [logged(k, 1, "a") for k in range(3)]
    rows[2]["timestamp"] = "noon"
    done = call("replay", lines(tmp_path / "log.jsonl", rows), "--pool", prices(tmp_path))
    assert "log.jsonl, line 3" in done.stderr
