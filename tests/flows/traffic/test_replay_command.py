"""`routeyard replay` on a gateway's log: costs by hand, and what it says it cannot know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.cli import run

POOL = """
models:
  - {model_id: large, provider: anthropic, price_in: 5, price_out: 25, price_cache_read: 0.5,
     price_cache_write: 6.25}
  - {model_id: small, provider: openai, price_in: 0.25, price_out: 1.25, price_cache_read: 0.025}
"""


def call(session: str, step: int, arm: str, prompt: int, read: int, **more: Any) -> dict[str, Any]:
    usage = {
        "prompt_tokens": prompt, "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": read},
    }  # fmt: skip
    return {
        "session_id": session, "timestamp": f"2026-11-01T10:0{step}:00Z", "latency_ms": 900,
        "request": {"model": arm}, "response": {"model": arm, "usage": usage}, **more,
    }  # fmt: skip


def files(tmp_path: Path, *records: dict[str, Any]) -> tuple[str, str]:
    log, pool = tmp_path / "log.jsonl", tmp_path / "pool.yaml"
    log.write_text("\n".join(map(json.dumps, records)) + "\n")
    pool.write_text(POOL)
    return str(log), str(pool)


@pytest.mark.extensions
def test_a_log_is_replayed_with_caches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, pool = files(
        tmp_path,
        call("a", 0, "large", 2_000, 0), call("a", 1, "large", 2_400, 2_000),
        call("b", 0, "small", 3_000, 0),
    )  # fmt: skip
    policies = ["-p", "recorded", "-p", "always:small"]
    assert run(["replay", log, "--pool", pool, *policies, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    recorded, small = found["costs"]
    large = 2_000 * 6.25 + 2_000 * 0.5 + 400 * 6.25 + 2 * 100 * 25
    other = 3_000 * 0.25 + 100 * 1.25
    assert recorded["usd"] == pytest.approx((large + other) / 1e6)
    # In steps of 128: 1,920 of the 2,000 tokens; completions as long as its one answer.
    cheap = 2_000 * 0.25 + 1_920 * 0.025 + 480 * 0.25 + 2 * 100 * 1.25
    assert small["usd"] == pytest.approx((cheap + other) / 1e6)
    assert small["estimated"] == 2
    # The log's own classes: no writes are counted there, so they cost as fresh tokens.
    assert found["usage"]["usd"] == pytest.approx(
        (2_000 * 5 + 2_000 * 0.5 + 400 * 5 + 5_000 + other) / 1e6
    )
    assert found["usage"]["fresh"] == pytest.approx((4_400 * 5 + 5_000 + other) / 1e6)
    assert (found["check"]["predicted"], found["check"]["recorded"]) == (2_000, 2_000)
    assert run(["replay", log, "--pool", pool, *policies]) == 0
    page = capsys.readouterr().out
    assert "completions of 2 of 3 steps are estimated" in page
    assert "unknown at every step" in page
    assert "anthropic (docs.anthropic.com" in page
    assert "whether another arm would have succeeded is not said" in page


@pytest.mark.extensions
def test_the_cheapest_sufficient_arm_is_said_where_both_were_executed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked(session: str, step: int, arm: str, outcome: float) -> dict[str, Any]:
        one = call(session, step, arm, 2_000 + step, 0, task="t", outcome=outcome)
        texts = ["start", "middle"][: step + 1]
        one["request"]["messages"] = [{"role": "user", "content": text} for text in texts]
        one["response"]["usage"]["cost"] = {"large": 0.1, "small": 0.01}[arm]
        return one

    log, pool = files(
        tmp_path,
        # Trial 1 is large throughout, trial 2 hands over to small after the first step.
        asked("a", 0, "large", 1), asked("a", 1, "large", 1),
        asked("b", 0, "large", 1), asked("b", 1, "small", 1),
    )  # fmt: skip
    assert run(["replay", log, "--pool", pool]) == 0
    page = capsys.readouterr().out
    assert "1 prompts from which several arms went on: small 1" in page
    # The small arm failed: the large one is the cheapest that sufficed.
    log, _ = files(
        tmp_path, asked("a", 0, "large", 1), asked("a", 1, "large", 1),
        asked("b", 0, "large", 0), asked("b", 1, "small", 0),
    )  # fmt: skip
    assert run(["replay", log, "--pool", pool]) == 0
    assert "went on: large 1" in capsys.readouterr().out


@pytest.mark.extensions
def test_what_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, pool = files(tmp_path, call("a", 0, "huge", 2_000, 0))
    assert run(["replay", log]) == 2
    assert "no prices are known" in capsys.readouterr().err
    assert run(["replay", log, "--pool", pool]) == 0
    page = capsys.readouterr().out
    assert "recorded, modelled: unknown in 1 of 1 steps: a price is not known" in page
    assert run(["replay", log, "--pool", pool, "--cache", "opnai"]) == 2
    assert "openai" in capsys.readouterr().err
    assert run(["replay", log, "--pool", pool, "-p", "always:smal"]) == 2
    assert "small" in capsys.readouterr().err
    (tmp_path / "pool.yaml").write_text("models: [1]\n")
    assert run(["replay", log, "--pool", pool]) == 2


@pytest.mark.extensions
def test_list_prices_stand_in_for_exact_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, _ = files(
        tmp_path, call("a", 0, "openai/gpt-4.1", 2_000, 0), call("a", 1, "openai/gpt-4.1", 2_100, 0)
    )
    policies = ["-p", "recorded", "-p", "always:openai/gpt-4.1-mini", "--json"]
    assert run(["replay", log, *policies]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["prices"]["openai/gpt-4.1"]["rule"] == "openai"
    assert "genai-prices" in found["prices"]["openai/gpt-4.1"]["source"]
    recorded, mini = found["costs"]
    assert recorded["usd"] > 0
    # The other arm never answered; its price alone does not tell what it would have said.
    assert mini["usd"] is None
    # A model that is not listed under exactly that name has no price.
    log, _ = files(tmp_path, call("a", 0, "openai/gpt-4.1-of-mine", 2_000, 0))
    assert run(["replay", log]) == 2
    assert "no prices are known" in capsys.readouterr().err
