"""Splits in counts are exact, and the slice of a large recipe is the small recipe."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from routeyard.pipelines.collect.plan import covered
from routeyard.pipelines.common.errors import RecipeError
from routeyard.pipelines.curate.split import dense_sparse, split
from routeyard.schemas import DUPLICATES
from routeyard.schemas.recipe.collect import Coverage


def duplicates(groups: list[list[str]]) -> pa.Table:
    return DUPLICATES.from_rows(
        {
            "query_id": query, "encoder": "e", "threshold": 0.999, "group_id": min(group),
            "representative": query == group[0], "similarity": 1.0, "label_conflict": False,
        }
        for group in groups
        for query in group
    )  # fmt: skip


def places(table: pa.Table, scheme: str = "dense") -> dict[str, str]:
    return {r["query_id"]: r["split"] for r in table.to_pylist() if r["scheme"] == scheme}


@pytest.fixture
def queries(make_queries: Any) -> Any:
    return make_queries([{"name": str(i), "task": f"t{i % 7}"} for i in range(701)])


@pytest.mark.parametrize("stratify", [True, False])
def test_counts_are_met_to_the_question(queries: Any, stratify: bool) -> None:
    found = Counter(
        places(split(queries, train=500, validation=30, test=101, stratify=stratify)).values()
    )
    # 70 questions stand in no split: nobody asked for them.
    assert found == {"train": 500, "validation": 30, "test": 101}


def test_train_takes_what_is_left_up_to_its_count(queries: Any) -> None:
    found = Counter(places(split(queries, train=9999, validation=1, test=1)).values())
    assert found == {"train": 699, "validation": 1, "test": 1}


def test_groups_of_duplicates_stay_together_and_counts_stay_exact(queries: Any) -> None:
    ids = queries.column("query_id").to_pylist()
    groups = [ids[i : i + 3] for i in range(0, 600, 3)]
    where = places(split(queries, duplicates(groups), train=500, validation=50, test=100))
    assert Counter(where.values()) == {"train": 500, "validation": 50, "test": 100}
    assert all(len({where.get(query) for query in group}) == 1 for group in groups)


def test_each_source_has_counts_of_its_own(make_queries: Any) -> None:
    rows = [{"name": f"{s}{i}", "task": s, "source": s} for s in "abc" for i in range(50)]
    queries = make_queries(rows)
    parts = {
        "a": {"train": 20, "validation": 5, "test": 10},
        "b": {"train": 0, "validation": 0, "test": 50},
    }
    where = places(split(queries, sources=parts))
    source = dict(
        zip(*(queries.column(c).to_pylist() for c in ("query_id", "source")), strict=True)
    )
    assert Counter((source[q], s) for q, s in where.items()) == {
        ("a", "train"): 20, ("a", "validation"): 5, ("a", "test"): 10, ("b", "test"): 50,
    }  # fmt: skip
    with pytest.raises(RecipeError, match="'z', of which there are no questions"):
        split(queries, sources={"z": {"train": 1, "validation": 0, "test": 0}})


def test_too_few_questions_are_an_error(queries: Any) -> None:
    with pytest.raises(RecipeError, match=r"701 questions cannot hold 5,000 for test"):
        split(queries, train=23_027, validation=3000, test=5000)


def marked(queries: pa.Table, dense: int) -> pa.Table:
    text = [
        json.dumps({"slice": "dense" if i < dense else "extension"}) for i in range(len(queries))
    ]
    at = queries.column_names.index("metadata")
    return queries.set_column(at, queries.schema.field(at), pa.array(text))


def test_the_marked_slice_is_split_as_the_small_recipe_splits_it(queries: Any) -> None:
    large = marked(queries, 200)
    added = dense_sparse(
        {"queries": large}, slice_share=None, validation=20, test=40, stratify=False
    ).added["splits"]
    small = places(split(large.slice(0, 200), train=140, validation=20, test=40, stratify=False))
    assert places(added) == small
    sparse = places(added, "sparse")
    assert Counter(sparse.values()) == {"train": 641, "validation": 20, "test": 40}
    held = {q: s for q, s in small.items() if s != "train"}
    assert {q: s for q, s in sparse.items() if s != "train"} == held


def test_a_twin_of_a_held_out_question_does_not_train_the_extension(queries: Any) -> None:
    large = marked(queries, 200)
    ids = large.column("query_id").to_pylist()
    twins = duplicates([[ids[i], ids[200 + i]] for i in range(200)])
    added = dense_sparse(
        {"queries": large, "duplicates": twins}, slice_share=None, validation=20, test=40
    ).added["splits"]
    where = places(added, "sparse")
    for i in range(200):
        if where[ids[i]] != "train":
            assert ids[200 + i] not in where


def test_the_dense_slice_is_asked_of_every_model_and_the_rest_of_a_third(queries: Any) -> None:
    asked = covered(marked(queries, 100), 9, Coverage(share=1 / 3))
    times = Counter(int(row) for rows in asked for row in rows)
    assert {times[i] for i in range(100)} == {9}
    assert {times[i] for i in range(100, 701)} == {3}
