"""A router in the shadow of a log: cost by day, outcomes, and what the log cannot tell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import routeyard
from routeyard.extensions.traffic.compare import replay_steps
from routeyard.extensions.traffic.shadow import shadow
from routeyard.flows.cli import run
from routeyard.pipelines.common.errors import BadInput
from tests.support.worded_release import worded_release

PRICES = {"large": 10.0, "small": 1.0}


def pool(path: Path, day: str = "2026-01-01", **prices: float) -> Path:
    rows = [
        {"model_id": name, "price_in": usd, "price_out": usd, "price_date": day}
        for name, usd in prices.items()
    ]
    path.write_text(json.dumps({"models": rows}))
    return path


def log(path: Path, n: int = 400, *, logged: bool = True, outcomes: bool = True) -> Path:
    """Four days of single calls: large in 70 %, small in 30 %; the small one is right in 60 %."""
    generator = np.random.default_rng(0)
    rows = []
    for k in range(n):
        large = generator.random() < 0.7
        arm = "large" if large else "small"
        row: dict[str, Any] = {
            "task": f"t{k}", "session": f"s{k}", "model": arm, "prompt_tokens": 1_000,
            "completion_tokens": 100,
            "timestamp": f"2026-11-0{1 + 4 * k // n}T10:{k % 60:02}:00Z",
        }  # fmt: skip
        if logged:
            row["propensity"] = 0.7 if large else 0.3
        if outcomes:
            row["outcome"] = float(generator.random() < (0.9 if large else 0.6))
        rows.append(row)
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_arms_without_a_price_are_named(tmp_path: Path) -> None:
    logs, prices = log(tmp_path / "log.jsonl"), pool(tmp_path / "pool.json", small=1.0)
    found = shadow(logs, ["always:small"], pools=[prices], resamples=50)
    [said] = [line for line in found.cannot if "no price is stated" in line]
    assert said.startswith("What calls of large cost: ")
    assert "--pool" in said


def test_cost_and_outcomes_with_propensities(tmp_path: Path) -> None:
    logs, prices = log(tmp_path / "log.jsonl"), pool(tmp_path / "pool.json", **PRICES)
    found = shadow(logs, ["always:small"], pools=[prices], resamples=300)
    large = round(400 * found.shares["large"][0])
    # 1,100 tokens at 10 or 1 USD per million.
    assert found.savings.total.modelled == pytest.approx((large * 10 + (400 - large)) * 1.1e-3)
    assert found.savings.total.routed == pytest.approx(400 * 1.1e-3)
    assert found.savings.pays == "yes"
    assert [day.day for day in found.savings.days] == [f"2026-11-0{k}" for k in range(1, 5)]
    assert sum(day.modelled for day in found.savings.days) == pytest.approx(
        found.savings.total.modelled
    )
    assert found.savings.stops is None
    assert found.achieved.estimate is not None
    by_name = {one.estimator: one for one in found.achieved.estimate.values}
    assert by_name.keys() == {"ips", "snips", "dr"}
    # With one propensity for each arm SNIPS is the mean of what the small arm did.
    rows = [json.loads(line) for line in logs.read_text().splitlines()]
    small = [row["outcome"] for row in rows if row["model"] == "small"]
    assert by_name["snips"].value == pytest.approx(sum(small) / len(small))
    assert found.achieved.estimate.effective == pytest.approx(len(small))
    page = "\n".join(found.lines())
    assert "Does it pay? Yes." in page
    assert "Effective sample size" in page


def test_without_propensities_only_bounds_are_told(tmp_path: Path) -> None:
    logs = log(tmp_path / "log.jsonl", logged=False)
    found = shadow(
        logs, ["always:small"], pools=[pool(tmp_path / "p.json", **PRICES)], resamples=300
    )
    assert found.achieved.estimate is None
    assert "have no propensity" in (found.achieved.refused or "")
    assert found.achieved.bounds is not None
    assert found.achieved.agreeing is not None
    # By hand: what the small arm got right, and everything where the large one was asked.
    rows = [json.loads(line) for line in logs.read_text().splitlines()]
    right = sum(row["outcome"] for row in rows if row["model"] == "small") / 400
    other = sum(row["model"] == "large" for row in rows) / 400
    assert found.achieved.bounds == pytest.approx((right, right + other))
    assert any("no propensity" in line for line in found.cannot)


def test_without_outcomes_it_says_so(tmp_path: Path) -> None:
    logs = log(tmp_path / "log.jsonl", outcomes=False)
    found = shadow(
        logs, ["always:small"], pools=[pool(tmp_path / "p.json", **PRICES)], resamples=300
    )
    assert found.achieved.bounds is None
    assert "It is unknown: no trajectory has an outcome" in "\n".join(found.lines())


def test_costs_that_are_unknown_are_no_zero(tmp_path: Path) -> None:
    logs = log(tmp_path / "log.jsonl")
    priced = pool(tmp_path / "p.json", large=PRICES["large"])
    found = shadow(logs, ["always:small"], pools=[priced], resamples=50)
    assert (found.savings.total.modelled, found.savings.total.routed) == (None, None)
    page = "\n".join(found.lines())
    assert re.search(r"\| all \| 400 \(400 unknown\) \| unknown \| unknown \| unknown \|", page)


def test_the_day_on_which_new_prices_make_the_router_wrong(tmp_path: Path) -> None:
    logs = log(tmp_path / "log.jsonl")
    pools = [
        pool(tmp_path / "p.json", **PRICES),
        # The small arm becomes the dearer one on the third day.
        pool(tmp_path / "q.json", "2026-11-03", small=30.0),
    ]
    found = shadow(logs, ["always:small"], pools=pools, resamples=300)
    assert found.savings.stops == "2026-11-03"
    saved = [day.saved[0] for day in found.savings.days if day.saved]
    assert saved[0] > 0
    assert saved[1] > 0
    assert saved[2] < 0
    assert "From 2026-11-03 on, to the end of the log, it costs more" in "\n".join(found.lines())
    with pytest.raises(BadInput, match="is no day"):
        shadow(logs, ["always:small"],
               pools=[pools[0], pool(tmp_path / "r.json", "soon", small=1.0)])  # fmt: skip


def test_recorded_usage_is_at_the_prices_of_each_day(tmp_path: Path) -> None:
    # It was at the last prices, beside a table that has each day's.
    logs = log(tmp_path / "log.jsonl", 80)
    rows = [json.loads(line) | {"cache_read_tokens": 0} for line in logs.read_text().splitlines()]
    logs.write_text("\n".join(map(json.dumps, rows)) + "\n")
    pools = [pool(tmp_path / "p.json", **PRICES), pool(tmp_path / "q.json", "2026-11-03", small=30)]
    found = shadow(logs, ["always:small"], pools=pools, resamples=300)
    assert found.usage.known == 80
    assert found.usage.usd == pytest.approx(found.savings.total.modelled)


def test_the_past_chooses_a_router_and_the_future_judges_it(tmp_path: Path) -> None:
    # Until the third day the small arm is cheap; then it is the dearer one, which nobody knew.
    logs = log(tmp_path / "log.jsonl")
    pools = [
        pool(tmp_path / "p.json", **PRICES),
        pool(tmp_path / "q.json", "2026-11-04", small=30.0),
    ]
    routers = ["always:large", "always:small"]
    found = shadow(logs, routers, pools=pools, after="2026-11-03", resamples=300)
    assert found.router == "always:small"
    assert found.past["always:small"].saved[0] > 0 > found.past["always:large"].saved[0]
    assert {day.trajectories for day in found.past.values()} == {200}
    assert [day.day for day in found.savings.days] == ["2026-11-03", "2026-11-04"]
    assert found.savings.stops == "2026-11-04"
    # Outcomes of the past say nothing of the future, and are not missing.
    assert found.achieved.with_outcome == found.achieved.trajectories == 200
    assert found.achieved.estimate is not None
    assert not [one for one in found.achieved.estimate.cautions if "without outcome" in one]
    assert "Judged on trajectories from 2026-11-03 on" in "\n".join(found.lines())
    with pytest.raises(BadInput, match="no day before which one of them is chosen"):
        shadow(logs, routers, pools=pools)
    with pytest.raises(BadInput, match="no trajectory begins on or after 2027-01-01"):
        shadow(logs, routers, pools=pools, after="2027-01-01")


def test_several_decisions_with_one_outcome_are_refused(tmp_path: Path) -> None:
    rows = [
        {"task": f"t{k}", "session": f"s{k}", "model": "large", "prompt_tokens": 1_000 + step,
         "completion_tokens": 100, "timestamp": f"2026-11-01T10:{k % 60:02}:0{step}Z",
         "propensity": 0.5, "outcome": 1.0}
        for k in range(80) for step in range(2)
    ]  # fmt: skip
    logs = tmp_path / "log.jsonl"
    logs.write_text("\n".join(map(json.dumps, rows)) + "\n")
    found = shadow(
        logs, ["always:small"], pools=[pool(tmp_path / "p.json", **PRICES)], resamples=300
    )
    assert "depend on what happened before" in (found.achieved.refused or "")
    # The small arm never answered: its costs are unknown, and so is what it saves.
    assert found.savings.total.saved is None
    assert found.savings.pays == "cannot be told"
    assert any("80 trajectories have no known cost" in line for line in found.cannot)


def test_the_command_writes_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs, prices = log(tmp_path / "log.jsonl", 120), pool(tmp_path / "pool.json", **PRICES)
    words = ["shadow", str(logs), "--router", "always:small", "--pool", str(prices)]
    page = tmp_path / "page.md"
    assert run([*words, "--out", str(page), "--resamples", "200"]) == 0
    assert page.read_text() == capsys.readouterr().out
    assert run([*words, "--json", "--resamples", "200"]) == 0
    assert json.loads(capsys.readouterr().out)["savings"]["pays"] == "yes"
    # A router that reads questions needs a log that holds them.
    assert run(["shadow", str(logs), "--router", str(tmp_path), "--pool", str(prices)]) == 2
    assert "do not say what was asked" in capsys.readouterr().err


def test_a_saved_router_reads_what_users_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = worded_release(tmp_path / "toy" / "1.0.0")
    saved = tmp_path / "saved"
    first = routeyard.route(release, "river castle king", router="ridge", save=saved)
    arms = sorted(first["scores"])
    asked = ["river castle king", "king", "castle garden river", "stone"]
    rows = [
        {"session_id": f"s{k}", "timestamp": f"2026-11-01T10:0{k}:00Z",
         "request": {"model": arms[0], "messages": [{"role": "user", "content": text}]},
         "response": {"usage": {"prompt_tokens": 10, "completion_tokens": 5}}}
        for k, text in enumerate(asked)
    ]  # fmt: skip
    logs = tmp_path / "log.jsonl"
    logs.write_text("\n".join(map(json.dumps, rows)) + "\n")
    prices = pool(tmp_path / "pool.json", **dict.fromkeys(arms, 1.0))
    found = shadow(logs, [str(saved)], pools=[prices], resamples=200)
    chosen = [routeyard.route(saved, text)["model_id"] for text in asked]
    expected = {arm: chosen.count(arm) / len(asked) for arm in arms}
    assert {arm: routed for arm, (_, routed) in found.shares.items()} == {
        arm: share for arm, share in expected.items() if share or arm == arms[0]
    }
    assert found.router == "saved"


def test_what_is_saved_is_as_sure_as_the_cache_that_other_traffic_left(tmp_path: Path) -> None:
    """Calls without sessions read caches that nobody knows another arm would have had."""
    rows = []
    for k in range(60):
        arm = ("a", "b")[k % 2]
        usage = {"prompt_tokens": 2_000, "completion_tokens": 10 + k % 3,
                 "prompt_tokens_details": {"cached_tokens": 1_920}}  # fmt: skip
        said = {"model": arm, "usage": usage}
        when = f"2026-11-01T10:{k:02}:00Z"
        rows.append({"id": f"c{k}", "timestamp": when, "request": said, "response": said})
    logs, prices = tmp_path / "log.jsonl", tmp_path / "prices.json"
    logs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    price = {"provider": "openai", "price_out": 0.0, "price_cache_read": 0.1}
    models = [
        price | {"model_id": "a", "price_in": 1.0},
        price | {"model_id": "b", "price_in": 0.9},
    ]
    prices.write_text(json.dumps({"models": models}))
    found = shadow(logs, ["always:b"], pools=[prices], resamples=200)
    assert found.savings.pays == "cannot be told"
    assert found.savings.total.saved is not None
    value, low, high = found.savings.total.saved
    assert low < value < high
    replayed = replay_steps(logs, ["recorded", "always:b"], pool=prices, resamples=200)
    saved = replayed.costs[1].saved
    assert saved is not None
    # The same sums and resamples by both commands; b, which loses no call, keeps what it read.
    assert (value, low, high) == pytest.approx(tuple(60 * end for end in saved), rel=1e-9)
    cheap, dear = 80 * 0.9 + 1_920 * 0.1, 2_000 * 0.9
    assert value == pytest.approx(30 * (80 + 192 - (cheap + dear) / 2) / 1e6)
