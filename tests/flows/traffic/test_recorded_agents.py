"""Recorded agents of other projects: a policy's replayed cost equals one calculated from the files,
with plain loops and without this package's readers."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from routeyard.extensions.traffic.compare import replay_steps
from routeyard.flows.audits import audit_path
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import run_import

pytestmark = pytest.mark.data

#: Prices per million: fresh, cached, answer; then seconds, least prefix and block of the cache.
RULES = {"openai": (2.0, 0.5, 8.0, 300, 1024, 128), "deepseek": (0.5, 0.05, 1.0, 3600, 64, 64)}


def by_hand(trajectories: list[list[Any]], policy: Any, means: dict[str, float]) -> float:
    """USD of [(arm, prompt, completion, seconds), …] when policy(step) serves each step."""
    total = 0.0
    for steps in trajectories:
        last: dict[str, tuple[int, float]] = {}
        for number, (arm, prompt, said, at) in enumerate(steps):
            now = policy(number)
            fresh_price, read_price, out_price, alive, least, block = RULES[now]
            read = 0
            if now in last and at - last[now][1] <= alive:
                read = min(last[now][0], prompt) // block * block
                read = read if read >= least else 0
            last[now] = (prompt, at)
            answer = said if arm == now else means[now]
            total += (prompt - read) * fresh_price + read * read_price + answer * out_price
    return total / 1e6


def pool(path: Path, arms: dict[str, str | None]) -> Path:
    """Prices of arms by rule; an arm without one is named as its rule is."""
    named = {name: rule or name for name, rule in arms.items()}
    rows = [
        {"model_id": name, "provider": rule, "price_in": RULES[rule][0],
         "price_cache_read": RULES[rule][1], "price_out": RULES[rule][2]}
        for name, rule in named.items()
    ]  # fmt: skip
    path.write_text(json.dumps({"models": rows}))
    return path


def test_tau2_bench(data: Path, tmp_path: Path) -> None:
    trajectories: list[list[Any]] = []
    runs = tmp_path / "runs"
    runs.mkdir()
    (path,) = (data / "shapes/trustedrouter_gateway/runs/tau2").glob("*/raw_results.json")
    content = json.loads(path.read_text())
    for number, rule in enumerate(RULES):
        # Every other simulation under the name of one arm; all else is the file's own.
        own = content["simulations"][number::2]
        content["info"]["agent_info"]["llm"] = rule
        (runs / f"{rule}.json").write_text(json.dumps(content | {"simulations": own}))
        for simulation in own:
            replies = [m for m in simulation["messages"] if m["role"] == "assistant"]
            trajectories.append([
                (rule, m["usage"]["prompt_tokens"], m["usage"]["completion_tokens"],
                 datetime.fromisoformat(m["timestamp"]).timestamp())
                for m in replies if m.get("usage")
            ])  # fmt: skip
    done = run_import(IMPORTERS.get("tau_bench"), runs, tmp_path / "imports" / "tau2")
    # The arms share no question, which is true; nothing is said against their tokens.
    kinds = {one.kind for one in audit_path(done.folder).findings}
    assert kinds <= {"disjoint_arms", "few_answers"}
    told = [step for steps in trajectories for step in steps]
    means = {}
    for rule in RULES:
        answers = [said for arm, _, said, _ in told if arm == rule]
        means[rule] = sum(answers) / len(answers)
    policies = {
        "always:openai": lambda step: "openai",
        "first:3:openai:deepseek": lambda step: "openai" if step < 3 else "deepseek",
        "first:2:deepseek:openai": lambda step: "deepseek" if step < 2 else "openai",
    }
    found = replay_steps(
        done.folder,
        list(policies),
        pool=pool(tmp_path / "pool.json", {one: one for one in RULES}),
        resamples=200,
    )
    assert found.steps == len(told) > 40
    for cost, policy in zip(found.costs, policies.values(), strict=True):
        assert cost.usd == pytest.approx(by_hand(trajectories, policy, means), rel=1e-12)
        assert cost.each is not None
        assert cost.each[1] < cost.each[0] < cost.each[2]


def test_inspect(data: Path, tmp_path: Path) -> None:
    """Five calls of a browsing agent; what its provider cached is what the rule predicts."""
    done = run_import(
        IMPORTERS.get("inspect"), data / "shapes/inspect_logs", tmp_path / "imports" / "inspect"
    )
    (log,) = (data / "shapes/inspect_logs").rglob("*_browser.json")
    events = json.loads(log.read_text())["samples"][0]["events"]
    used = [e["output"]["usage"] for e in events if e["event"] == "model"]
    usd = sum(
        (u["input_tokens"] - u["input_tokens_cache_read"]) * 2.0
        + u["input_tokens_cache_read"] * 0.5 + u["output_tokens"] * 8.0
        for u in used
    ) / 1e6  # fmt: skip
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    steps = pq.read_table(done.folder / "steps.parquet")
    only = tmp_path / "browser.parquet"
    pq.write_table(steps.filter(pc.equal(steps.column("query_id"), "browser/1")), only)
    prices = pool(tmp_path / "pool.json", {"openai/gpt-4o-mini": "openai"})
    found = replay_steps(only, ["recorded"], pool=prices, resamples=200)
    assert found.costs[0].usd == found.usage.usd == pytest.approx(usd, rel=1e-12)
    assert found.check is not None
    assert found.check.predicted == found.check.recorded == 9_088
    assert not [one for one in audit_path(done.folder).findings if one.severity == "grave"]


@pytest.mark.parametrize(
    ("format", "source"),
    [("mint", "shapes/mint_multiturn"),
     ("tau_bench", "trajectories/tau_bench_airline_gpt4o.parquet")],
)  # fmt: skip
def test_steps_without_tokens_have_no_cost(
    format: str, source: str, data: Path, tmp_path: Path
) -> None:
    done = run_import(IMPORTERS.get(format), data / source, tmp_path / "imports" / format)
    arm = "gpt-3.5-turbo-0613" if format == "mint" else "tau_bench_airline_gpt4o"
    found = replay_steps(
        done.folder, ["recorded"], pool=pool(tmp_path / "p.json", {arm: "openai"}), resamples=200
    )
    assert found.costs[0].usd is None
    assert "no prompt tokens are recorded" in found.costs[0].untold
    assert found.usage.known == 0 or not math.isnan(found.usage.usd)
    metering = {"tokens_capped", "tokens_exchanged", "constant_count", "cached_tokens"}
    assert not [one for one in audit_path(done.folder).findings if one.kind in metering]
