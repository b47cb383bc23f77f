"""Replayed costs equal a plain calculation step by step, and what is unknown stays unknown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from routeyard.extensions.traffic.outcome import assumptions, policy_costs
from routeyard.extensions.traffic.replay import policy_arms, replay, trajectories_of
from routeyard.pipelines.common import trajectories
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.trajectories import ArmPrice, cache_rule, price_of_row

START = datetime(2026, 11, 1, tzinfo=UTC)
PRICES = {
    "strong": ArmPrice(5, 25, 0.5, 6.25, "anthropic"),
    "cheap": ArmPrice(0.25, 1.25, 0.025, None, "openai"),
    "local": ArmPrice(0.1, 0.2, 0.0, None, "llama_cpp"),
}
NAMES = tuple(PRICES)


def row(task: str, trial: int, step: int, **more: Any) -> dict[str, Any]:
    return {
        "query_id": task, "model_id": "agent", "sample": trial, "step": step, "acted_by": "strong",
        "prompt_tokens": 2_000, "completion_tokens": 100, "parent": step - 1 if step else None,
        "requested_at": (START + timedelta(seconds=10 * step)).isoformat(), **more,
    }  # fmt: skip


def planted(tasks: int = 30, seed: int = 0) -> pa.Table:
    """Trajectories of two arms with pauses on both sides of every time to live."""
    generator = np.random.default_rng(seed)
    rows = []
    for task in range(tasks):
        for trial in range(2):
            at, prompt = float(generator.integers(0, 1_000_000)), int(generator.integers(50, 3_000))
            for step in range(int(generator.integers(1, 12))):
                at += float(generator.choice([1, 100, 299, 301, 4_000]))
                rows.append(
                    row(f"t{task}", trial, step,
                        acted_by=str(generator.choice(["strong", "cheap"])),
                        prompt_tokens=prompt,
                        completion_tokens=int(generator.integers(1, 400)),
                        requested_at=(START + timedelta(seconds=at)).isoformat())
                )  # fmt: skip
                prompt += int(generator.integers(0, 900))
    generator.shuffle(rows)
    return pa.Table.from_pylist(rows)


def plain(table: pa.Table, serve: Any) -> dict[str, float]:
    """A loop over steps that shares no code with the replay."""
    by_trajectory: dict[Any, list[dict[str, Any]]] = {}
    for one in table.to_pylist():
        by_trajectory.setdefault((one["query_id"], one["sample"]), []).append(one)
    means = {
        arm: np.mean([r["completion_tokens"] for r in table.to_pylist() if r["acted_by"] == arm])
        for arm in ("strong", "cheap")
    }
    total = read_total = 0.0
    for rows in by_trajectory.values():
        cache: dict[str, tuple[int, datetime]] = {}
        for one in sorted(rows, key=lambda r: int(r["step"])):
            arm = serve(one)
            price, rule = PRICES[arm], cache_rule(PRICES[arm].rule)
            now, prompt, read = datetime.fromisoformat(one["requested_at"]), one["prompt_tokens"], 0
            if arm in cache and (now - cache[arm][1]).total_seconds() <= rule.ttl_s:
                left = cache[arm][0] // rule.block * rule.block
                read = left if left >= rule.minimum else 0
            write = prompt - read if rule.premium and prompt >= rule.minimum else 0
            fresh = prompt - read - write
            total += (fresh * price.input + read * price.read + write * (price.write or 0)) / 1e6
            said = one["completion_tokens"] if arm == one["acted_by"] else means[arm]
            total += said * price.output / 1e6
            read_total += read
            cache[arm] = (prompt, now)
    return {"usd": total, "read": read_total}


POLICIES = {
    "recorded": lambda one: one["acted_by"],
    "always:strong": lambda one: "strong",
    "always:cheap": lambda one: "cheap",
    "first:3:strong:cheap": lambda one: "strong" if one["step"] < 3 else "cheap",
    "every:2:strong:cheap": lambda one: "strong" if one["step"] % 2 == 0 else "cheap",
}


def test_costs_equal_a_calculation_from_scratch() -> None:
    table = planted()
    steps = trajectories_of(table)
    arms = {text: policy_arms(text, steps, NAMES) for text in POLICIES}
    for found in policy_costs(steps, arms, PRICES, NAMES, resamples=100):
        expected = plain(table, POLICIES[found.policy])
        assert found.usd == pytest.approx(expected["usd"], rel=1e-12)
        assert found.read_tokens == expected["read"]
        assert found.bounds == pytest.approx((found.usd, found.usd))
        assert found.each is not None
        assert found.saved is not None
        assert found.each[1] < found.each[0] < found.each[2]


def test_costs_do_not_depend_on_the_order_of_rows() -> None:
    table = planted()
    back = table.take(pa.array(range(table.num_rows))[::-1])
    for text in ("recorded", "first:3:strong:cheap"):
        one, other = (
            policy_costs(s, {text: policy_arms(text, s, NAMES)}, PRICES, NAMES, resamples=100)
            for s in (trajectories_of(table), trajectories_of(back))
        )
        assert one == other


def test_a_switch_pays_the_prefix_again() -> None:
    # By hand: 4,000 tokens strong, then 4,200 by cheap, then 4,400 by strong again.
    rows = [row("t", 0, k, prompt_tokens=4_000 + 200 * k) for k in range(3)]
    steps = trajectories_of(pa.Table.from_pylist(rows))
    arm = np.array([0, 1, 0])
    found = replay(steps, arm, PRICES, NAMES)
    assert found.read_most.tolist() == [0, 0, 4_000]
    assert found.write.tolist() == [4_000, 0, 400]
    usd = [4_000 * 6.25, 4_200 * 0.25, 4_000 * 0.5 + 400 * 6.25]
    assert found.prompt_least == pytest.approx(np.array(usd) / 1e6)
    assert found.switch.tolist() == [False, True, True]
    # Cheap in steps of 128: 3,968 of the 4,000 tokens, had the cache been its own.
    assert found.lost[1] == pytest.approx(3_968 * (0.25 - 0.025) / 1e6)
    assert found.lost[2] == pytest.approx(200 * (6.25 - 0.5) / 1e6)


def test_short_prefixes_and_old_caches_are_not_read() -> None:
    rows = [row("t", 0, 0, prompt_tokens=900), row("t", 0, 1, prompt_tokens=1_500)]
    short = replay(trajectories_of(pa.Table.from_pylist(rows)), np.zeros(2, int), PRICES, NAMES)
    assert short.read_most.tolist() == [0, 0]
    assert short.write.tolist() == [0, 1_500]  # below the minimum nothing is written either
    for seconds, read in ((300, 2_000), (301, 0)):
        late = (START + timedelta(seconds=seconds)).isoformat()
        rows = [row("t", 0, 0), row("t", 0, 1, prompt_tokens=2_500, requested_at=late)]
        steps = trajectories_of(pa.Table.from_pylist(rows))
        assert replay(steps, np.zeros(2, int), PRICES, NAMES).read_most[1] == read


def test_an_answer_stays_in_the_cache_where_the_rule_says_so() -> None:
    rows = [row("t", 0, 0), row("t", 0, 1, prompt_tokens=2_500)]
    steps = trajectories_of(pa.Table.from_pylist(rows))
    assert replay(steps, np.full(2, 2), PRICES, NAMES).read_most[1] == 2_100


def test_unknown_times_and_rewritten_prompts_give_bounds() -> None:
    rows = [row("t", 0, 0), row("t", 0, 1, prompt_tokens=2_500, requested_at=None)]
    steps = trajectories_of(pa.Table.from_pylist(rows))
    found = replay(steps, np.zeros(2, int), PRICES, NAMES)
    assert (found.read_least[1], found.read_most[1]) == (0, 2_000)
    (cost,) = policy_costs(steps, {"recorded": np.zeros(2, int)}, PRICES, NAMES, resamples=100)
    assert cost.bounds is not None
    assert cost.bounds[0] < cost.bounds[1]
    assert any("1 steps have no time" in line for line in assumptions(steps, NAMES))
    # No parent and a prompt that shrinks: compacted, and nobody knows what stayed.
    rows = [row("t", 0, 0), row("t", 0, 1, prompt_tokens=1_500, parent=None)]
    steps = trajectories_of(pa.Table.from_pylist(rows))
    found = replay(steps, np.zeros(2, int), PRICES, NAMES)
    assert (found.read_least[1], found.read_most[1]) == (0, 1_500)
    assert any("1 prompts were rewritten" in line for line in assumptions(steps, NAMES))


def test_what_cannot_be_told_is_not_told() -> None:
    steps = trajectories_of(planted())
    # `local` never answered: its completions are unknown, and nothing replaces them.
    (never,) = policy_costs(
        steps, {"p": policy_arms("always:local", steps, NAMES)}, PRICES, NAMES, resamples=100
    )
    assert (never.usd, never.each) == (None, None)
    assert never.untold == {"the arm never answered, so its completions are unknown": len(steps)}
    assert never.known > 0
    unpriced = PRICES | {"cheap": ArmPrice(1, 1, None, None, "openai")}
    (cost,) = policy_costs(
        steps, {"p": policy_arms("always:cheap", steps, NAMES)}, unpriced, NAMES, resamples=100
    )
    assert cost.usd is None
    assert "a price is not known" in cost.untold
    assert unpriced["cheap"].lacks == ("price_cache_read",)
    table = planted()
    tokens = pa.array([None, *table.column("prompt_tokens").to_pylist()[1:]], pa.int64())
    table = table.set_column(table.column_names.index("prompt_tokens"), "prompt_tokens", tokens)
    steps = trajectories_of(table)
    (cost,) = policy_costs(
        steps, {"p": policy_arms("recorded", steps, NAMES)}, PRICES, NAMES, resamples=100
    )
    assert (cost.usd, cost.untold) == (None, {"no prompt tokens are recorded": 1})


def test_estimated_completions_widen_the_interval() -> None:
    steps = trajectories_of(planted(300))
    (cost,) = policy_costs(
        steps, {"p": policy_arms("always:cheap", steps, NAMES)}, PRICES, NAMES, resamples=500
    )
    assert 0 < cost.estimated < len(steps)
    assert cost.each is not None


def test_policies_in_words_and_from_a_file(tmp_path: Any) -> None:
    table = planted(3)
    steps = trajectories_of(table)
    rows = [
        {name: one[name] for name in ("query_id", "model_id", "sample", "step")}
        | {"arm": "cheap" if one["step"] % 3 else "local"}
        for one in table.to_pylist()
    ]
    path = tmp_path / "policy.csv"
    path.write_text(
        "\n".join([",".join(rows[0]), *(",".join(map(str, one.values())) for one in rows)]) + "\n"
    )
    found = policy_arms(str(path), steps, NAMES, table)
    assert found.tolist() == [2 if step % 3 == 0 else 1 for step in steps.step]
    path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, rows[0].values())),)]) + "\n")
    with pytest.raises(BadInput, match="steps have no arm"):
        policy_arms(str(path), steps, NAMES, table)
    for wrong in ("sometimes", "always:gold", "first:x:strong:cheap", "first:2:strong:gold"):
        with pytest.raises(BadInput):
            policy_arms(wrong, steps, NAMES)
    # Names with colons, as gateways have them.
    names = ("openai:mini", "openai:large")
    assert policy_arms("first:1:openai:large:openai:mini", steps, names)[:1].tolist() == [1]


def test_rules_have_a_source_and_prices_a_rule() -> None:
    assert all(cache_rule(name).source for name in trajectories._rules())
    known = price_of_row({"model_id": "claude-x", "price_in": 3, "price_cache_read": 0.3})
    assert (known.rule, known.lacks) == ("anthropic", ("price_out", "price_cache_write"))
    # No price of reads and no rule stated: taken as without cache.
    assert price_of_row({"model_id": "gpt-4o", "price_in": 3}).rule == "none"


def test_tables_without_the_key_are_refused() -> None:
    with pytest.raises(BadInput, match="'step' is missing"):
        trajectories_of(planted().drop_columns(["step"]))
    with pytest.raises(BadInput, match="there are no steps"):
        trajectories_of(planted().slice(0, 0))


def test_prompts_longer_than_the_prices_hold_for_have_no_cost() -> None:
    steps = trajectories_of(pa.Table.from_pylist([row("t", 0, 0), row("t", 0, 1)]))
    prices = {"strong": ArmPrice(5, 25, 0.5, 6.25, "anthropic", up_to=1_999)}
    (cost,) = policy_costs(steps, {"p": np.zeros(2, int)}, prices, ("strong",), resamples=100)
    assert (cost.usd, cost.untold) == (None, {"a price is not known": 2})


def test_what_the_first_call_read_from_other_traffic_is_a_bound() -> None:
    rows = [row("t", 0, 0, cache_read_tokens=1_500), row("t", 0, 1, prompt_tokens=2_500)]
    steps = trajectories_of(pa.Table.from_pylist(rows))
    found = replay(steps, np.array([0, 1]), PRICES, NAMES)
    assert (found.read_least.tolist(), found.read_most.tolist()) == ([0, 0], [1_500, 0])
    # An arm that loses no call reads what it read.
    found = replay(steps, np.zeros(2, int), PRICES, NAMES)
    assert found.read_least.tolist() == found.read_most.tolist() == [1_500, 2_000]
    assert any("1 trajectories read 1,500 tokens" in line for line in assumptions(steps, NAMES))
    # The rules alone do not predict it.
    alone = replay(steps, np.zeros(2, int), PRICES, NAMES, shared=False)
    assert alone.read_most.tolist() == [0, 2_000]


def test_one_task_has_no_interval() -> None:
    steps = trajectories_of(pa.Table.from_pylist([row("t", trial, 0) for trial in range(5)]))
    (cost,) = policy_costs(steps, {"p": np.zeros(5, int)}, PRICES, NAMES, resamples=100)
    assert cost.usd is not None
    assert cost.each is not None
    assert np.isnan(cost.each[1:]).all()
