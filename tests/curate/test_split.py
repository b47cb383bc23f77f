from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from routeyard.pipelines.common.errors import RecipeError
from routeyard.pipelines.curate.split import dense_sparse, out_of_distribution, split, unseen_models
from routeyard.schemas import DUPLICATES


def duplicates(groups: list[list[str]]) -> pa.Table:
    return DUPLICATES.from_rows(
        {
            "query_id": query, "encoder": "e", "threshold": 0.999, "group_id": min(group),
            "representative": query == group[0], "similarity": 1.0, "label_conflict": False,
        }
        for group in groups
        for query in group
    )  # fmt: skip


def places(table: pa.Table, scheme: str) -> dict[str, str]:
    return {r["query_id"]: r["split"] for r in table.to_pylist() if r["scheme"] == scheme}


@pytest.fixture
def queries(make_queries: Any) -> Any:
    return make_queries([{"name": str(i), "task": f"t{i % 7}"} for i in range(700)])


def test_shares_hold_in_every_task(queries: Any) -> None:
    where = places(split(queries), "dense")
    tasks = dict(zip(*(queries.column(c).to_pylist() for c in ("query_id", "task")), strict=True))
    for task in set(tasks.values()):
        counts = Counter(where[q] for q, t in tasks.items() if t == task)
        assert abs(counts["test"] - 20) <= 1
        assert abs(counts["validation"] - 10) <= 1


def test_row_order_does_not_matter_and_additions_move_few(queries: Any, make_queries: Any) -> None:
    before = places(split(queries), "dense")
    assert places(split(queries.take(list(range(699, -1, -1)))), "dense") == before
    more = make_queries([{"name": str(i), "task": f"t{i % 7}"} for i in range(707)])
    after = places(split(more), "dense")
    # One more question per task moves at most the one at each of two borders.
    assert sum(after[q] != before[q] for q in before) <= 14
    assert places(split(queries, seed=1), "dense") != before


def test_small_tasks_do_not_all_lose_their_test(make_queries: Any) -> None:
    single = make_queries([{"name": str(i), "task": f"t{i}"} for i in range(1000)])
    counts = Counter(places(split(single), "dense").values())
    assert 150 < counts["test"] < 250


def test_groups_of_duplicates_never_straddle(queries: Any) -> None:
    ids = queries.column("query_id").to_pylist()
    groups = [ids[i : i + 5] for i in range(0, 500, 5)]
    where = places(split(queries, duplicates(groups)), "dense")
    assert all(len({where[q] for q in group}) == 1 for group in groups)


def test_shares_must_add_up() -> None:
    with pytest.raises(RecipeError, match="add up"):
        split(pa.table({"query_id": [], "task": []}), train=0.5)


def test_dense_and_sparse_share_validation_and_test(queries: Any) -> None:
    result = dense_sparse({"queries": queries}, slice_share=0.5, validation=70, test=140)
    dense, sparse = (places(result.added["splits"], s) for s in ("dense", "sparse"))
    for part, size in (("validation", 70), ("test", 140)):
        chosen = {q for q, p in dense.items() if p == part}
        assert chosen == {q for q, p in sparse.items() if p == part}
        assert abs(len(chosen) - size) <= 7
    train = [{q for q, p in d.items() if p == "train"} for d in (dense, sparse)]
    assert not train[0] & train[1]
    assert len(train[0] | train[1]) + 210 == pytest.approx(700, abs=14)
    assert abs(len(dense) - 350) <= 7
    with pytest.raises(RecipeError, match="cannot hold"):
        dense_sparse({"queries": queries}, slice_share=0.1)


def test_held_out_group_and_its_duplicates_never_train(make_queries: Any, qid: Any) -> None:
    queries = make_queries(
        [{"name": f"m{i}", "task": "Math"} for i in range(20)]
        + [{"name": f"l{i}", "task": "law"} for i in range(80)]
    )
    tables = {"queries": queries, "duplicates": duplicates([[qid("m0"), qid("l0")]])}
    result = out_of_distribution(tables, groups=["math", "medical"])
    where = places(result.added["splits"], "ood:math")
    assert {q for q, p in where.items() if p == "test"} == {qid(f"m{i}") for i in range(20)}
    assert qid("l0") not in where
    assert Counter(where.values())["validation"] == pytest.approx(8, abs=1)
    assert "left out" in result.figures["medical"]
    with pytest.raises(RecipeError, match="no out-of-distribution group"):
        out_of_distribution(tables, groups=["maths"])


def test_two_thirds_of_the_pool_are_seen(make_models: Any) -> None:
    models = make_models([f"m{i}" for i in range(30)])
    table = unseen_models({"models": models}).added["model_splits"]
    assert Counter(table.column("split").to_pylist()) == {"seen": 20, "unseen": 10}


def test_groups_hold_subjects_of_mmlu_and_what_metadata_says(make_queries: Any, qid: Any) -> None:
    rows = [
        {"name": "a", "task": "mmlu_college_physics"},
        {"name": "b", "task": "gpqa_main_zeroshot"},
        {"name": "c", "task": "mmlu_marketing"},
        {"name": "d", "task": "mmlu", "metadata": json.dumps({"Subject": "Conceptual Physics"})},
        {"name": "e", "task": "mmlu", "metadata": json.dumps({"subject": "law", "x": "physics"})},
    ]
    tables = {"queries": make_queries(rows)}
    asked = {"named": "subject=*physics", "gpqa": "gpqa_*", "mmlu": "MMLU*"}
    made = out_of_distribution(tables, groups={name: [text] for name, text in asked.items()})
    made = made.added["splits"]
    held = {
        name: {q for q, p in places(made, f"ood:{name}").items() if p == "test"} for name in asked
    }
    assert held == {
        "named": {qid("d")}, "gpqa": {qid("b")}, "mmlu": {qid(name) for name in "acde"},
    }  # fmt: skip
    # By name: physics of MMLU is STEM, and CSCR's list (Table 6) holds GPQA as well.
    made = out_of_distribution(tables, groups=["stem", "cscr-stem"]).added["splits"]
    for scheme, inside in (("ood:stem", "a"), ("ood:cscr-stem", "ab")):
        found = {q for q, p in places(made, scheme).items() if p == "test"}
        assert found == {qid(name) for name in inside}
