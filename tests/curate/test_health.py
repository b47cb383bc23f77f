from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from routeyard.pipelines.curate.health import health
from routeyard.schemas import DUPLICATES, SPLITS


@pytest.fixture
def tables(
    make_queries: Any, make_models: Any, make_labels: Any, make_embeddings: Any, qid: Any
) -> dict[str, Any]:
    queries = make_queries(
        [{"name": str(i), "task": "ab"[i % 2], "source": "rs"[i // 3]} for i in range(6)]
    )
    ids = [qid(str(i)) for i in range(6)]
    vectors = np.eye(6)[[0, 1, 2, 0, 4, 5]]
    return {
        "queries": queries,
        "models": make_models(["x", "y", "z"]),
        "labels": make_labels(
            [(q, m, None if (m, i) == ("z", 0) else i % k == 0)
             for i, q in enumerate(ids) for m, k in (("x", 1), ("y", 2), ("z", 3))]
        ),
        "embeddings": make_embeddings(ids, vectors),
        "splits": SPLITS.from_rows(
            {"scheme": "dense", "query_id": q, "split": "train" if i else "test"}
            for i, q in enumerate(ids)
        ),
    }  # fmt: skip


def test_figures_by_hand(tables: dict[str, Any]) -> None:
    result = health(tables, trade_off=0.5)
    models = {row["model_id"]: row for row in result.tables["models"].to_pylist()}
    assert models["x"]["accuracy"] == 1.0
    # z has one undecided answer: 1 right of 5, not of 6.
    assert models["z"]["accuracy"] == pytest.approx(1 / 5)
    assert models["z"]["coverage"] == pytest.approx(5 / 6)
    assert result.facts["unlimited_budget"]
    sources = {row["source"]: row for row in result.tables["duplicates_by_source"].to_pylist()}
    # Question 0 of r and question 3 of s have one vector.
    assert sources["r"]["in_groups"] == sources["s"]["in_groups"] == 1
    assert sources["r"]["groups_across_sources"] == 1
    # y is right on 0 and wrong on 3.
    assert sources["r"]["groups_with_conflict"] == 1
    leaks = result.tables["duplicates_across_splits"].to_pylist()
    assert leaks == [{"scheme": "dense", "queries": 6, "groups_straddling": 1}]
    assert len(result.tables["pruning_order"]) == 2
    assert result.facts["not_measured"] == []


def test_what_cannot_be_measured_is_named(tables: dict[str, Any]) -> None:
    del tables["embeddings"]
    result = health(tables)
    assert len(result.facts["not_measured"]) == 2
    assert "task_similarity" not in result.tables
    assert "pruning_order" not in result.tables


def test_removed_members_of_a_group_are_no_error(tables: dict[str, Any], qid: Any) -> None:
    tables["duplicates"] = DUPLICATES.from_rows(
        {
            "query_id": name, "encoder": "e", "threshold": 0.999, "group_id": "g",
            "representative": name == qid("0"), "similarity": 1.0, "label_conflict": False,
        }
        for name in (qid("0"), "q" + "f" * 20)
    )  # fmt: skip
    rows = health(tables).tables["duplicates_by_source"].to_pylist()
    assert sum(row["in_groups"] for row in rows) == 1
