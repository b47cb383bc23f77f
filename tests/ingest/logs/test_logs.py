"""Logs of gateways become steps: tokens by class, trajectories, parents, and what is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from routeyard.extensions.traffic.replay import audit_steps
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.logs import read_log
from routeyard.schemas.errors import BadInput


def written(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    return path


def call(step: int, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 2_000 + step, "completion_tokens": 10}
    return {
        "id": f"c{step}", "session_id": "s1", "timestamp": f"2026-11-01T10:00:0{step}Z",
        "latency_ms": 1_500, "request": {"model": "m"},
        "response": {"model": "m-2026", "usage": usage}, **more,
    }  # fmt: skip


def test_calls_of_a_session_are_steps_by_time(tmp_path: Path) -> None:
    log = read_log(written(tmp_path / "log.jsonl", call(2), call(0), call(1)))
    rows = log.steps.to_pylist()
    assert [(r["query_id"], r["step"], r["prompt_tokens"]) for r in rows] == [
        ("s1", 0, 2_000), ("s1", 1, 2_001), ("s1", 2, 2_002),
    ]  # fmt: skip
    assert {r["acted_by"] for r in rows} == {"m-2026"}
    assert rows[0]["latency_s"] == 1.5
    assert rows[0]["cache_read_tokens"] is None
    assert log.doubts == []


def test_trials_of_a_task_stay_apart(tmp_path: Path) -> None:
    records = [call(k % 3, session_id=f"s{k // 3}", task="t") for k in range(6)]
    rows = read_log(written(tmp_path / "log.jsonl", *records)).steps.to_pylist()
    assert [(r["query_id"], r["sample"], r["step"]) for r in rows] == [
        ("t", sample, step) for sample in (0, 1) for step in (0, 1, 2)
    ]


def test_without_a_session_the_log_says_what_it_cannot_tell(tmp_path: Path) -> None:
    records = [{k: v for k, v in call(k_).items() if k != "session_id"} for k_ in range(3)]
    log = read_log(written(tmp_path / "log.jsonl", *records))
    assert "3 of 3 calls name no session" in log.doubts[0]
    assert log.steps.column("query_id").to_pylist() == ["c0", "c1", "c2"]
    named = [dict(one, metadata={"run": "r"}) for one in records]
    log = read_log(written(tmp_path / "log.jsonl", *named), named="session=metadata.run")
    assert log.doubts == []
    assert log.steps.column("step").to_pylist() == [0, 1, 2]


def test_messages_tell_sessions_and_parents(tmp_path: Path) -> None:
    # Two conversations of one log without ids, and a branch from the first prompt.
    def asked(step: int, *texts: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": text} for text in texts]
        one = call(step, request={"model": "m", "messages": messages})
        del one["session_id"]
        return one

    log = read_log(
        written(tmp_path / "log.jsonl", asked(0, "a"), asked(1, "x"), asked(2, "a", "b"),
                asked(3, "a", "b", "c"), asked(4, "a", "d"))
    )  # fmt: skip
    rows = log.steps.to_pylist()
    by_root: dict[str, list[Any]] = {}
    for one in rows:
        by_root.setdefault(one["query_id"], []).append(one["parent"])
    assert sorted(by_root.values(), key=len) == [[None], [None, 0, 1, 0]]
    assert log.doubts == []
    assert len({one["prefix_hash"] for one in rows}) == 5


def test_formats_of_gateways(tmp_path: Path) -> None:
    litellm = {
        "request_id": "r1", "call_type": "acompletion", "startTime": "2026-11-01 10:00:00",
        "endTime": "2026-11-01 10:00:02.5", "model": "claude-sonnet", "model_group": "smart",
        "spend": 0.0, "prompt_tokens": 120, "completion_tokens": 7, "session_id": "s",
        "metadata": json.dumps({"usage_object": {"prompt_tokens": 120, "completion_tokens": 7,
                                                 "cache_read_input_tokens": 100}}),
        "status": "success",
    }  # fmt: skip
    openrouter = {
        "id": "gen-1", "created_at": "2026-11-01T10:00:00+00:00", "model": "openai/gpt-x",
        "provider_name": "OpenAI", "native_tokens_prompt": 50, "native_tokens_completion": 5,
        "native_tokens_cached": 0, "native_tokens_reasoning": 2, "total_cost": 0.25,
        "generation_time": 1_200, "latency": 300,
    }  # fmt: skip
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": [litellm, openrouter, {"note": "no call"}]}))
    log = read_log(path)
    assert dict(log.formats) == {"litellm": 1, "openrouter": 1}
    assert dict(log.left_out) == {"records of no listed format": 1}
    one, other = sorted(log.steps.to_pylist(), key=lambda r: str(r["acted_by"]))
    assert (one["acted_by"], one["cache_read_tokens"], one["latency_s"]) == (
        "claude-sonnet", 100, 2.5,
    )  # fmt: skip
    # A spend of 0 beside tokens is a price that is missing.
    assert (one["cost_usd"], other["cost_usd"]) == (None, 0.25)
    assert (other["cache_read_tokens"], other["reasoning_tokens"]) == (0, 2)


@pytest.mark.parametrize("place", [0, 3])
def test_calls_without_tokens_are_calls(tmp_path: Path, place: int) -> None:
    # As a gateway logs what failed, at whatever place in the log.
    failed = {"id": "f", "session_id": "s2", "timestamp": "2026-11-01T10:00:09Z", "status": 500,
              "latency_ms": 900, "request": {"model": "m"}, "cost": 0.0}  # fmt: skip
    records = [call(0), call(1), call(2)]
    records.insert(place, failed)
    records += [{"event": "health", "status": 200}, {"request": {"model": "m"}}]
    log = read_log(written(tmp_path / "log.jsonl", *records))
    assert log.steps.num_rows == 4
    [one] = [r for r in log.steps.to_pylist() if r["query_id"] == "s2"]
    assert (one["status"], one["prompt_tokens"], one["latency_s"]) == ("error", None, 0.9)
    # Nobody is billed for it; 0 beside tokens of an answer is a missing price.
    assert one["cost_usd"] == 0.0
    assert "1 calls state no tokens, which are unknown" in log.doubts
    assert dict(log.left_out) == {"records of no listed format": 2}


def test_lines_that_are_cut_and_amounts_below_0_are_told(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", call(0), call(1, latency_ms=-1, cost=-0.5), call(2))
    first, second, third = path.read_text().splitlines()
    path.write_text(f"{first}\nnull\n{second}\n[1]\n{third}\n{first[:50]}")
    log = read_log(path)
    assert dict(log.left_out) == {"lines of log.jsonl that are no JSON object: 2, 4, 6": 3}
    rows = log.steps.to_pylist()
    assert [(r["latency_s"], r["cost_usd"]) for r in rows] == [
        (1.5, None),
        (None, None),
        (1.5, None),
    ]
    assert log.doubts == [
        "1 values of cost are below 0: they are taken as unknown",
        "1 values of latency_ms are below 0: they are taken as unknown",
    ]
    path.write_text("{\n")
    with pytest.raises(SourceError, match="no record is of a listed format"):
        read_log(path)


def test_surprises_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no record is of a listed format"):
        read_log(written(tmp_path / "log.jsonl", {"a": 1}))
    bad = call(0)
    bad["response"]["usage"]["prompt_tokens"] = -3
    with pytest.raises(SourceError, match="-3"):
        read_log(written(tmp_path / "log.jsonl", bad))
    with pytest.raises(SourceError, match="is no time"):
        read_log(written(tmp_path / "log.jsonl", call(0, timestamp="yesterday")))


def test_audit_of_steps_finds_each_planted_fault(tmp_path: Path) -> None:
    def used(step: int, **usage: Any) -> dict[str, Any]:
        one = call(step, latency_ms=1_000 + step)
        one["response"]["usage"] |= usage
        return one

    honest = [used(k, prompt_tokens_details={"cached_tokens": 1_000 * (k > 0)}) for k in range(4)]
    assert audit_steps(read_log(written(tmp_path / "log.jsonl", *honest)).steps) == []
    planted = {
        "classes": [used(4, prompt_tokens_details={"cached_tokens": 9_000})],
        "reasoning": [used(4, completion_tokens_details={"reasoning_tokens": 11})],
        "unwritten": [used(4, prompt_tokens=9_000, prompt_tokens_details={"cached_tokens": 5_000})],
        "outcomes": [used(4) | {"outcome": 1.0}, used(5) | {"outcome": 0.0}],
        "repeated": [honest[3]],
    }
    for check, faults in planted.items():
        log = read_log(written(tmp_path / "log.jsonl", *honest, *faults))
        found = {one.check: one for one in audit_steps(log.steps)}
        assert check in found, (check, found)
        assert found[check].count == 1
        assert check in str(found[check])
    told = [{"session_id": "s", "step": k, "model": "m", "prompt_tokens": 9,
             "requested_at": f"2026-11-01T10:00:0{3 - k}Z"} for k in range(2)]  # fmt: skip
    (late,) = audit_steps(read_log(written(tmp_path / "log.jsonl", *told)).steps)
    assert (late.check, late.count) == ("backwards", 1)


def test_a_real_gateways_log(data: Path) -> None:
    runs = data / "shapes/trustedrouter_gateway/runs/tau2"
    for run, prompt, cached, completion, usd in (
        ("deepseek_v4_flash_20tasks", 6_221_663, 5_075_456, 111_312, None),
        ("socrates_1_1_rerun_20tasks", 4_724_595, 3_473_664, 97_497, 6.702605),
    ):
        folder = runs / f"tau2_banking_knowledge_bm25_{run}" / "trustedrouter-calls"
        steps = read_log(folder).steps
        sums = [
            pc.sum(steps.column(name)).as_py()
            for name in ("prompt_tokens", "cache_read_tokens", "completion_tokens", "cost_usd")
        ]
        assert sums[:3] == [prompt, cached, completion]
        # No cost is recorded in one of them: unknown, not 0.
        assert sums[3] == (usd if usd is None else pytest.approx(usd))


OWN = {
    "wann": 1790000038,
    "wer": "acme/large",
    "rein": 900,
    "raus": 30,
    "lauf": "s1",
    "dauer_ms": 1500,
}


def test_a_log_with_keys_of_its_own_is_read_as_they_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", OWN, OWN | {"wann": 1790000100, "wer": "acme/small"})
    log = read_log(
        path,
        named="arm=wer,time=wann,prompt_tokens=rein,completion_tokens=raus,session=lauf,"
        "latency=dauer_ms",
    )
    rows = log.steps.to_pylist()
    assert [row["acted_by"] for row in rows] == ["acme/large", "acme/small"]
    assert [row["step"] for row in rows] == [0, 1]
    assert {(row["prompt_tokens"], row["completion_tokens"]) for row in rows} == {(900, 30)}
    assert {row["latency_s"] for row in rows} == {1.5}
    assert log.doubts == []


def test_a_log_of_no_listed_format_is_refused_with_its_keys_and_the_option(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", OWN)
    with pytest.raises(SourceError) as caught:
        read_log(path)
    assert "wann, wer, rein, raus" in str(caught.value.where)
    assert "--map arm=KEY" in str(caught.value.next_step)
    with pytest.raises(BadInput, match="each once, with a column; found 'who=wer'"):
        read_log(path, named="who=wer")


def test_calls_with_a_providers_usage_need_no_mapping(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 682, "completion_tokens": 137, "total_tokens": 819}
    record = {"ts": 1790000038, "trace_id": "s0", "model": "a/b", "usage": usage,
              "response_cost": 0.001367, "latency_ms": 2096, "feedback": None}  # fmt: skip
    [row] = read_log(written(tmp_path / "log.jsonl", record)).steps.to_pylist()
    assert (row["prompt_tokens"], row["completion_tokens"]) == (682, 137)
    assert (row["cost_usd"], row["cost_source"]) == (0.001367, "provider")
    assert (row["latency_s"], row["requested_at"]) == (2.096, "2026-09-21T14:13:58+00:00")


def test_names_alone_say_what_a_gateways_keys_are(tmp_path: Path) -> None:
    record = {"engine": "a/b", "tokens_in": 900, "tokens_out": 30, "cost_cents": 5, "took": 1,
              "elapsed_seconds": 2.5}  # fmt: skip
    # A call that failed states no cost.
    failed = {key: value for key, value in record.items() if key != "cost_cents"}
    log = read_log(written(tmp_path / "log.jsonl", record, failed))
    [row, other] = log.steps.to_pylist()
    assert (other["prompt_tokens"], other["cost_usd"]) == (900, None)
    assert (row["acted_by"], row["prompt_tokens"], row["completion_tokens"]) == ("a/b", 900, 30)
    assert (row["cost_usd"], row["latency_s"]) == (0.05, 2.5)
    said = "arm=engine,prompt_tokens=tokens_in,completion_tokens=tokens_out,cost=cost_cents,"
    said += "latency=elapsed_seconds"
    assert log.doubts[0] == f"records of no listed format are read as --map {said}"
    # What is printed can be pasted, and says the same.
    assert read_log(tmp_path / "log.jsonl", named=said).steps == log.steps


def test_a_cost_that_is_named_has_the_unit_of_its_name(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", OWN | {"preis_cents": 5})
    log = read_log(path, named="arm=wer,prompt_tokens=rein,cost=preis_cents")
    assert log.steps.column("cost_usd").to_pylist() == [0.05]


def rated(rating: Any, n: int) -> dict[str, Any]:
    return {"ts": f"2026-11-01T10:00:{n:02}Z", "trace": f"t{n}", "model_name": "m",
            "usage": {"prompt_tokens": 9, "completion_tokens": 1}, "feedback": rating}  # fmt: skip


def test_a_key_that_is_only_named_like_a_score_stops_nothing(tmp_path: Path) -> None:
    """A log whose `feedback` holds an object could not be read at all."""
    ratings = [{"thumbs": "up"}, "thumbs up", "lukewarm", 0.5, None, "no"]
    path = written(tmp_path / "a.jsonl", *(rated(rating, n) for n, rating in enumerate(ratings)))
    log = read_log(path)
    assert log.steps.column("outcome").to_pylist() == [None, 1.0, None, 0.5, None, 0.0]
    assert any(doubt.startswith("keys that were not read: feedback") for doubt in log.doubts)
    with pytest.raises(SourceError, match=r"'feedback' holds \{'thumbs': 'up'\}") as caught:
        read_log(path, named="arm=model_name,usage=usage,score=feedback")
    assert "score=KEY.KEY" in str(caught.value.next_step)
