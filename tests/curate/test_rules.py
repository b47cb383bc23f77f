"""What every curation rule has to keep: nothing goes without a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routeyard.pipelines.common.errors import RecipeError
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.contamination import contamination
from routeyard.pipelines.curate.pseudo_specialists import pseudo_specialists
from routeyard.pipelines.curate.rule import curate
from routeyard.pipelines.curate.specialist_sample import specialist_sample
from routeyard.schemas import CONTRACTS

#: Parameters under which each rule has something to do on the small tables.
PARAMETERS: dict[str, dict[str, Any]] = {
    "contamination": {"against": ["b"], "n": 2, "overlap": 0.5, "action": "remove"},
    "dedup": {"threshold": 0.9},
    "dense_sparse": {"slice_share": 0.6, "validation": 1, "test": 1},
    "out_of_distribution": {"groups": {"held": ["t0"]}},
    "preference": {"strong": "m0", "weak": "m1", "basis": "correctness"},
    "prune": {"trade_off": 0.5, "target": 2},
    "pseudo_specialists": {"tasks": ["t0"]},
    "upstream_split": {},
    "specialist_sample": {"quota": 3, "floor": 1, "redundant": 0.9},
    "unseen_models": {},
}
#: Rules with tests of their own tables (responses with samples).
ELSEWHERE = {"preference"}


def tables_of(seed: int, make: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 30))
    names = [str(i) for i in range(n)]
    queries = make["queries"](
        [
            {
                "name": name,
                "task": f"t{rng.integers(0, 3) if i > 2 else i}",
                "source": "ab"[int(rng.integers(0, 2)) if i > 1 else i],
                "metadata": '{"split": "' + ("dev", "train", "test", "odd")[i % 4] + '"}',
                "question": f"what is {rng.integers(0, 6)} plus {rng.integers(0, 3)}",
            }
            for i, name in enumerate(names)
        ]
    )
    ids = queries.column("query_id").to_pylist()
    vectors = np.eye(6)[rng.integers(0, 6, n)] + 0.05 * rng.normal(size=(n, 6))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    models = [f"m{i}" for i in range(4)]
    cells = [
        (query, model, None if rng.random() < 0.1 else bool(rng.random() < 0.6))
        for query in ids
        for model in models
    ]
    return {
        "queries": queries,
        "models": make["models"](models),
        "labels": make["labels"](cells),
        "embeddings": make["embeddings"](ids, vectors),
    }


@pytest.fixture
def make(
    make_queries: Any, make_models: Any, make_labels: Any, make_embeddings: Any
) -> dict[str, Any]:
    return {
        "queries": make_queries,
        "models": make_models,
        "labels": make_labels,
        "embeddings": make_embeddings,
    }


def test_every_rule_is_covered() -> None:
    without = sorted(set(RULES.builtin) - set(PARAMETERS))
    assert not without, (
        f"add {without} to PARAMETERS above: kept + removed = input is tested for each"
    )
    assert set(PARAMETERS) <= set(RULES.builtin)


@pytest.mark.parametrize("name", sorted(set(PARAMETERS) - ELSEWHERE))
@settings(deadline=None, max_examples=5, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_kept_plus_removed_is_the_input(name: str, make: dict[str, Any], seed: int) -> None:
    tables = tables_of(seed, make)
    result = RULES.get(name)(tables, **PARAMETERS[name])
    for table, column, entity in (
        ("queries", "query_id", "query"),
        ("models", "model_id", "model"),
    ):
        if table not in result.kept:
            assert entity not in result.removed.column("entity").to_pylist()
            continue
        gone = [r["key"] for r in result.removed.to_pylist() if r["entity"] == entity]
        kept = result.kept[table].column(column).to_pylist()
        assert sorted(gone + kept) == sorted(tables[table].column(column).to_pylist())
    for row in result.removed.to_pylist():
        assert row["reason"]
        assert row["detail"]
    for table, rows in result.added.items():
        CONTRACTS[table].check(rows)
    # The same input gives the same bytes.
    again = RULES.get(name)(tables, **PARAMETERS[name])
    assert again.removed.equals(result.removed)
    assert all(again.added[t].equals(result.added[t]) for t in result.added)
    assert again.figures == result.figures


def test_rules_in_order_leave_whole_tables(make: dict[str, Any]) -> None:
    tables = tables_of(5, make)
    names = ["dedup", "specialist_sample", "prune", "pseudo_specialists", "unseen_models"]
    applied = curate(tables, [(name, PARAMETERS[name]) for name in names])
    queries = set(applied.tables["queries"].column("query_id").to_pylist())
    models = set(applied.tables["models"].column("model_id").to_pylist())
    assert set(applied.tables["labels"].column("query_id").to_pylist()) == queries
    assert set(applied.tables["labels"].column("model_id").to_pylist()) == models
    assert "pseudo-specialist:t0" in models
    for table in ("queries", "models", "labels"):
        CONTRACTS[table].check(applied.tables[table])


def test_pseudo_specialist_is_exact_to_one_question(make: dict[str, Any]) -> None:
    queries = make["queries"](
        [{"name": f"a{i}", "task": "a"} for i in range(37)]
        + [{"name": f"b{i}", "task": "b"} for i in range(50)]
    )
    ids = queries.column("query_id").to_pylist()
    cells = [(q, m, i % k == 0) for i, q in enumerate(ids) for m, k in (("x", 2), ("y", 3))]
    tables = {
        "queries": queries, "models": make["models"](["x", "y"]), "labels": make["labels"](cells)
    }  # fmt: skip

    def right(result: Any, task: str) -> int:
        tasks = dict(zip(ids, queries.column("task").to_pylist(), strict=True))
        return sum(
            r["correct"]
            for r in result.added["labels"].to_pylist()
            if r["model_id"] == "pseudo-specialist:a" and tasks[r["query_id"]] == task
        )

    result = pseudo_specialists(tables, tasks=["a"])
    # best on a: 19/37; +25 points: 28.25 of 37.
    assert right(result, "a") == 28
    # mean on b: right for x 25 of 50, for y 16 or 17.
    b = [c for c in cells if c[0] in ids[37:]]
    assert right(result, "b") == int(sum(c[2] for c in b) / 2 + 0.5)
    assert right(pseudo_specialists(tables, tasks={"a": 0.5}), "a") == 19
    assert right(pseudo_specialists(tables, tasks=["a"], gain=1.0, cap=0.95), "a") == 35
    model = result.added["models"].to_pylist()[-1]
    assert model["kind"] == "pseudo_specialist"
    assert model["price_in"] is None
    assert "responses" not in result.added
    other = pseudo_specialists(tables, tasks=["a"], seed=1)
    assert right(other, "a") == 28
    assert not other.added["labels"].equals(result.added["labels"])
    with pytest.raises(RecipeError, match="no task"):
        pseudo_specialists(tables, tasks=["c"])


def test_target_tasks_are_hard_level_and_large(make: dict[str, Any]) -> None:
    queries = make["queries"](
        [{"name": f"{t}{i}", "task": t} for t in ("easy", "hard", "led", "tiny") for i in range(20)]
    ).slice(0, 65)
    shares = {"easy": (18, 18), "hard": (6, 4), "led": (18, 1), "tiny": (1, 1)}
    cells = [
        (r["query_id"], m, int(r["source_id"].removeprefix(r["task"])) < shares[r["task"]][k])
        for r in queries.to_pylist()
        for k, m in enumerate(("x", "y"))
    ]  # fmt: skip
    tables = {
        "queries": queries, "models": make["models"](["x", "y"]), "labels": make["labels"](cells)
    }  # fmt: skip
    result = pseudo_specialists(tables, min_queries=10)
    assert [row["task"] for row in result.figures["injected"]] == ["hard"]


def test_sampling_keeps_redundant_tasks_once_and_demanding_ones_whole(
    make: dict[str, Any],
) -> None:
    queries = make["queries"](
        [{"name": f"{t}{i}", "task": t} for t in ("code", "copy", "easy") for i in range(30)]
    )
    rows = queries.to_pylist()
    ids = [r["query_id"] for r in rows]
    # special beats the generalist on code and copy, and nowhere else.
    cells = [
        (r["query_id"], "general", r["task"] == "easy" or i % 2 == 0) for i, r in enumerate(rows)
    ]
    cells += [
        (r["query_id"], "special", r["task"] != "easy" and i % 10 != 0) for i, r in enumerate(rows)
    ]
    vectors = np.array([[0, 1] if r["task"] == "easy" else [1, 0] for r in rows])
    tables = {
        "queries": queries,
        "models": make["models"](["general", "special"]),
        "labels": make["labels"](cells),
        "embeddings": make["embeddings"](ids, vectors),
    }
    plan = specialist_sample(tables, quota=10, floor=4, redundant=0.95).figures["tasks"]
    kept = {row["task"]: (row["decision"], row["kept"]) for row in plan}
    assert kept == {
        "code": ("demanding", 30),
        "copy": ("redundant_task", 4),
        "easy": ("generalist_sufficient", 10),
    }


def test_contamination_finds_exact_and_overlapping_texts(make: dict[str, Any]) -> None:
    queries = make["queries"](
        [
            {"name": "1", "source": "ours", "question": "One two  THREE four five"},
            {"name": "2", "source": "ours", "question": "zero one two three four five"},
            {"name": "3", "source": "ours", "question": "something else stands here now"},
            {"name": "4", "source": "theirs", "question": "one two three four five"},
        ]
    )
    result = contamination({"queries": queries}, against=["theirs"], n=3, overlap=0.7)
    assert result.figures["by_dataset"] == {"theirs": {"exact": 1, "n_gram": 1}}
    assert len(result.removed) == 0
    removed = contamination(
        {"queries": queries}, against=["theirs"], n=3, overlap=0.7, action="remove"
    )
    assert removed.kept["queries"].column("source_id").to_pylist() == ["3", "4"]
