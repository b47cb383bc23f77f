"""RouterBench+'s chain, costs of injected models, budgets, published splits, leaks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from routeyard.pipelines.common.errors import RecipeError
from routeyard.pipelines.common.matrix import from_tables
from routeyard.pipelines.curate.health import health
from routeyard.pipelines.curate.pseudo_specialists import pseudo_specialists
from routeyard.pipelines.curate.rule import curate
from routeyard.pipelines.curate.specialist_sample import specialist_sample
from routeyard.pipelines.curate.split import upstream_split
from routeyard.pipelines.curate.task_analysis import model_costs
from routeyard.pipelines.evaluate.run import evaluate
from routeyard.pipelines.routers import ROUTERS
from routeyard.schemas import CONTRACTS, DUPLICATES, RESPONSES, SPLITS
from routeyard.schemas.questions import group_of, leaked_tests


@pytest.fixture
def pool(make_queries: Any, make_models: Any, make_labels: Any) -> dict[str, pa.Table]:
    """Three real models, two of them with answers that cost something."""
    queries = make_queries([{"name": f"{t}{i}", "task": t} for t in "ab" for i in range(20)])
    ids = queries.column("query_id").to_pylist()
    cells = [(q, m, (i + k) % 3 == 0) for i, q in enumerate(ids) for k, m in enumerate("xyz")]
    responses = RESPONSES.from_rows(
        {
            "query_id": q, "model_id": m, "sample": 0, "text": "1", "status": "ok", "attempts": 1,
            "prompt_tokens": 10 * (k + 1), "completion_tokens": 100 * (k + 1),
            "cost_usd": 0.001 * (k + 1), "cost_source": "provider", "latency_s": float(k + 1),
        }
        for q in ids
        for k, m in enumerate("xyz")
    )  # fmt: skip
    return {
        "queries": queries,
        "models": make_models(["x", "y", "z"], params_b=[1.0, 7.0, 70.0]),
        "labels": make_labels(cells),
        "responses": responses,
    }


def test_an_injected_model_costs_the_pools_medians_unless_stated(pool: dict[str, pa.Table]) -> None:
    result = pseudo_specialists(pool, tasks=["a"])
    model = result.added["models"].to_pylist()[-1]
    assert model["params_b"] == 7.0
    mine = [r for r in result.added["responses"].to_pylist() if r["model_id"] == model["model_id"]]
    assert len(mine) == 40
    assert {(r["prompt_tokens"], r["completion_tokens"]) for r in mine} == {(20, 200)}
    assert {r["cost_usd"] for r in mine} == {0.002}
    assert {r["latency_s"] for r in mine} == {2.0}
    assert {r["cost_source"] for r in mine} == {"stated"}
    CONTRACTS["responses"].check(result.added["responses"])
    costs = result.figures["costs"]
    assert costs["params_b"] == {"value": 7.0, "from": "median"}
    said = pseudo_specialists(
        pool, tasks=["a"], params_b=3.0, price_in=1.0, price_out=2.0, price_date="2026-01-01",
        prompt_tokens=50, completion_tokens=100,
    )  # fmt: skip
    last = said.added["responses"].to_pylist()[-1]
    assert last["cost_usd"] == pytest.approx((50 * 1.0 + 100 * 2.0) / 1e6)
    assert said.figures["costs"]["params_b"] == {"value": 3.0, "from": "stated"}
    # Every cost measure of the pool exists with the injected model, and none is free.
    tables = {**pool, **said.added}
    core = from_tables(**{k: tables[k] for k in ("queries", "models", "labels", "responses")})
    assert set(core.costs) == {"usd", "tokens", "latency", "params"}


def test_nothing_to_inject_is_said(pool: dict[str, pa.Table]) -> None:
    result = pseudo_specialists(pool, min_queries=1000)
    assert result.added == {}
    assert "no pseudo-specialist was injected" in result.figures["warning"]


def test_the_specialist_score_takes_budgets_in_parameters(pool: dict[str, pa.Table]) -> None:
    bare = {name: table for name, table in pool.items() if name != "responses"}
    assert model_costs(bare) == {"x": 1.0, "y": 7.0, "z": 70.0}
    assert model_costs(pool) == pytest.approx({"x": 0.001, "y": 0.002, "z": 0.003})
    assert model_costs(pool, "params") == {"x": 1.0, "y": 7.0, "z": 70.0}
    figures = specialist_sample(bare).figures
    assert not figures["unlimited_budget"]
    # Budget 1 has one model; 7 and 70 have two and three.
    assert figures["budgets"] == 2
    # The paper has no quotas: without any, no question goes.
    assert specialist_sample(bare).removed.num_rows == 0


def test_the_upstream_split_is_kept(make_queries: Any) -> None:
    rows = [{"name": str(i), "metadata": json.dumps({"split": s})} for i, s in enumerate(
        ["train", "dev", "TEST", "extra"])]  # fmt: skip
    queries = make_queries(rows)
    result = upstream_split({"queries": queries})
    found = {r["query_id"]: r["split"] for r in result.added["splits"].to_pylist()}
    ids = queries.column("query_id").to_pylist()
    assert [found.get(q) for q in ids] == ["train", "validation", "test", None]
    assert result.figures["unread"] == {"extra": 1}
    with pytest.raises(RecipeError, match="which split it is in"):
        upstream_split({"queries": queries}, field="part")


def test_test_questions_that_stand_in_train_are_counted(
    make_queries: Any, make_labels: Any, make_models: Any
) -> None:
    # As one published router data set has it: 119 of 500 test questions stand in train.
    rows = [{"name": f"r{i}", "question": f"Question number {i}?"} for i in range(700)]
    rows += [{"name": f"t{i}", "question": f"question  NUMBER {i}?"} for i in range(119)]
    rows += [{"name": f"t{i}", "question": f"Another, {i}?"} for i in range(119, 500)]
    queries = make_queries(rows)
    ids = queries.column("query_id").to_pylist()
    splits = SPLITS.from_rows(
        {"scheme": "upstream", "query_id": q, "split": "train" if i < 700 else "test"}
        for i, q in enumerate(ids)
    )
    duplicates = DUPLICATES.from_rows(
        {
            "query_id": q, "encoder": "e", "threshold": 0.99, "group_id": "g", "similarity": 1.0,
            "representative": q == ids[0], "label_conflict": False,
        }
        for q in (ids[0], ids[1199])
    )  # fmt: skip
    (row,) = leaked_tests(queries, splits, group_of(duplicates))
    assert row == {"scheme": "upstream", "test": 500, "verbatim": 119, "near_duplicates": 1}
    tables = {
        "queries": queries, "models": make_models(["x"]), "splits": splits,
        "labels": make_labels([(q, "x", True) for q in ids]), "duplicates": duplicates,
    }  # fmt: skip
    shown = health(tables).tables["test_in_train"].to_pylist()
    assert shown == [row]


def test_routerbench_plus_112_82_85_evaluates_with_every_cost_metric(
    make_queries: Any, make_models: Any
) -> None:
    # EmbedLLM's shape, smaller: 112 models of 14 kinds, eight of each nearly alike.
    rng = np.random.default_rng(0)
    n, kinds, tasks = 600, 14, 6
    task = rng.integers(0, tasks, n)
    queries = make_queries([{"name": str(i), "task": f"t{task[i]}"} for i in range(n)])
    ids = queries.column("query_id").to_pylist()
    skill = rng.uniform(0.2, 0.5, (kinds, tasks))
    base = rng.random((n, kinds)) < skill[:, task].T
    names = [f"m{k:02}-{c}" for k in range(kinds) for c in range(8)]
    flips = rng.random((n, 112)) < 0.05 * (1 + np.arange(112) % 8)
    right = np.repeat(base, 8, axis=1) ^ flips
    labels = CONTRACTS["labels"].conform(
        pa.table(
            {
                "query_id": np.repeat(ids, 112),
                "model_id": np.tile(names, n),
                "score": right.ravel().astype(float),
                "correct": right.ravel(),
                "decided_by": ["given"] * (112 * n),
                "contested": [False] * (112 * n),
                "n_samples": pa.array([1] * (112 * n), pa.int32()),
            }
        )
    )
    tables = {
        "queries": queries,
        "models": make_models(names, params_b=[float(1 + k % 70) for k in range(112)]),
        "labels": labels,
    }
    applied = curate(
        tables,
        [
            ("prune", {"trade_off": 0.5, "target": 82}),
            ("pseudo_specialists", {"min_queries": 50, "max_mean_accuracy": 0.6, "max_gap": 0.9}),
        ],
    )
    assert [step["after"]["models"] for step in applied.figures] == [82, 85]
    splits = SPLITS.from_rows(
        {"scheme": "dense", "query_id": q, "split": ("train", "train", "test")[i % 3]}
        for i, q in enumerate(ids)
    )
    core = from_tables(
        *(applied.tables[name] for name in ("queries", "models", "labels")), splits=splits
    )
    assert core.n_models == 85
    done = evaluate(
        core, {"task-map": lambda seed: ROUTERS.get("task-map")()}, resamples=100, points=20,
        all=True,
    )  # fmt: skip
    mine = {r["metric"]: r["value"] for r in done.metrics.to_pylist() if r["router"] == "task-map"}
    for name in ("audc", "audc_budget", "peak_accuracy", "mean_cost", "aiq", "nauc", "perf_gain"):
        assert mine[f"{name}[params]"] is not None, name
    assert {"qnc[params]", "utility[params,0.5]", "accuracy_at_budget[params]"} <= set(mine)
    assert any(r["metric"] == "mcnemar[params]" for r in evaluate(
        core, {n: lambda seed, n=n: ROUTERS.get(n)() for n in ("task-map", "best-generalist")},
        resamples=100, points=20,
    ).comparisons.to_pylist())  # fmt: skip
    # The injected specialists are chosen on their tasks: they are what the pool lacked.
    chosen = {r["model_id"] for r in done.choices.to_pylist() if r["router"] == "task-map"}
    assert sum(name.startswith("pseudo-specialist:") for name in chosen) == 3
