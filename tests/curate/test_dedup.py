from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.curate.dedup import dedup, group_rows

LONG = "word " * 300


def test_truncated_texts_that_differ_past_the_cut_are_no_duplicates() -> None:
    # The trap: same passage, other question, and the encoder read the passage only.
    texts = [LONG + "Who won?", LONG + "Who lost?", LONG + "who  WON?"]
    vectors = np.repeat(np.eye(4, dtype=np.float32)[:1], 3, axis=0)
    groups = group_rows(vectors, texts, [1000, 1000, 1000], threshold=0.999)
    assert (groups.pairs, groups.pairs_counted) == (3, 1)
    assert groups.label[0] == groups.label[2] != groups.label[1]
    trusting = group_rows(vectors, texts, [1000, 1000, 1000], threshold=0.999, compare_unseen=False)
    assert trusting.pairs_counted == 3


def test_text_that_ends_at_the_cut_is_not_one_that_goes_on() -> None:
    texts = ["a b c", "a b c except"]
    vectors = np.ones((2, 4), dtype=np.float32)
    groups = group_rows(vectors, texts, [None, 5], threshold=0.999)
    assert groups.pairs_counted == 0


def test_one_more_sign_before_the_cut_moves_it_and_still_agrees() -> None:
    # The cut falls one word earlier in the second text; its end is the same.
    texts = ["x y one two three", "' x y one two three"]
    vectors = np.array([[1, 0.001], [1, 0]], dtype=np.float32)
    groups = group_rows(vectors, texts, [7, 5], threshold=0.999)
    assert groups.pairs_counted == 1


@pytest.fixture
def tables(make_queries: Any, make_embeddings: Any, make_labels: Any, qid: Any) -> dict[str, Any]:
    queries = make_queries(
        [
            {"name": "a", "question": "2+2?", "source": "s"},
            {"name": "b", "question": "2 + 2 = ?", "source": "r"},
            {"name": "c", "question": "other", "source": "s"},
            {"name": "d", "question": "2+2", "source": "s"},
        ]
    )
    vectors = np.array([[1, 0, 0], [1, 0.001, 0], [0, 1, 0], [1, 0, 0]], dtype=np.float32)
    ids = [qid(name) for name in "abcd"]
    # Rows stand in another order than the queries: they are matched by id.
    embeddings = make_embeddings(ids[::-1], vectors[::-1])
    labels = make_labels(
        [
            (qid("a"), "m", True), (qid("a"), "n", False),
            (qid("b"), "m", False), (qid("b"), "n", True),
            (qid("d"), "m", True),
        ]
    )  # fmt: skip
    return {"queries": queries, "embeddings": embeddings, "labels": labels}


def test_keeps_one_of_each_group_and_says_why(tables: dict[str, Any], qid: Any) -> None:
    result = dedup(tables)
    assert result.kept["queries"].column("source_id").to_pylist() == ["a", "c"]
    removed = {row["key"]: row for row in result.removed.to_pylist()}
    assert set(removed) == {qid("b"), qid("d")}
    assert removed[qid("b")]["reason"] == "near_duplicate"
    assert qid("a") in removed[qid("b")]["detail"]
    rows = result.added["duplicates"].to_pylist()
    assert [row["query_id"] for row in rows if row["representative"]] == [qid("a")]
    assert {row["group_id"] for row in rows} == {min(qid(name) for name in "abd")}
    assert all(row["label_conflict"] for row in rows)
    assert result.figures["groups_conflict_across_models"] == 1
    assert result.figures["groups_conflict_within_models"] == 1
    assert result.figures["groups_across_sources"] == 1
    (between,) = result.figures["groups_by_source_pair"]
    assert between == {"sources": ["r", "s"], "groups": 1}
    assert result.figures["pairs_counted"] == 3


def test_policies(tables: dict[str, Any], qid: Any) -> None:
    def kept(**parameters: Any) -> list[str]:
        return list(dedup(tables, **parameters).kept["queries"].column("source_id").to_pylist())

    assert kept(keep="all") == ["a", "b", "c", "d"]
    assert kept(representative="longest") == ["b", "c"]
    assert kept(prefer_sources=["r"]) == ["b", "c"]
    # Both have as many labels: the lower id, wherever it is in the table.
    assert kept(representative="most_labelled") == [min("ab", key=qid), "c"]


def test_undecided_labels_conflict_with_nothing(
    tables: dict[str, Any], make_labels: Any, qid: Any
) -> None:
    tables["labels"] = make_labels([(qid("a"), "m", True), (qid("b"), "m", None)])
    assert not any(row["label_conflict"] for row in dedup(tables).added["duplicates"].to_pylist())


def test_bad_vectors_are_named_by_query(
    tables: dict[str, Any], make_embeddings: Any, qid: Any
) -> None:
    vectors = np.ones((4, 3), dtype=np.float32)
    vectors[2] = np.nan
    tables["embeddings"] = make_embeddings([qid(name) for name in "abcd"], vectors)
    with pytest.raises(BadInput) as caught:
        dedup(tables)
    assert qid("c") in str(caught.value)


def test_missing_embedding_is_named(tables: dict[str, Any], qid: Any) -> None:
    tables["embeddings"] = tables["embeddings"].slice(0, 3)
    with pytest.raises(BadInput) as caught:
        dedup(tables)
    assert qid("a") in str(caught.value)
