"""Tables to matrices."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from routeyard.pipelines.common.encoders import text_of
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import codes, dense, encoder_vectors, from_tables


def test_matrix_equals_a_plain_loop(tables) -> None:
    parts = tables(n=50)
    core = from_tables(**parts)
    for row in parts["labels"].to_pylist():
        at = core.query_ids.index(row["query_id"]), core.model_ids.index(row["model_id"])
        assert core.labels[at] == row["score"]
    for row in parts["responses"].to_pylist():
        at = core.query_ids.index(row["query_id"]), core.model_ids.index(row["model_id"])
        assert core.costs["usd"][at] == pytest.approx(row["cost_usd"])
        assert core.costs["tokens"][at] == 30


def test_questions_are_the_texts_that_embeddings_are_made_of(tables) -> None:
    queries = tables()["queries"].slice(0, 3)
    queries = queries.append_column("question", pa.array(["Which?", "What is\n1 + 1?", ""]))
    options = pa.array([["a, b", "c"], [], None], pa.list_(pa.string()))
    core = from_tables(**{**tables(), "queries": queries.append_column("choices", options)})
    expected = [text_of(q, c or []) for q, c in zip(queries["question"].to_pylist(),
                                                    options.to_pylist(), strict=True)]  # fmt: skip
    assert core.questions == tuple(expected) == ("Which?\na, b\nc", "What is\n1 + 1?", "")
    part = core.take(np.array([2, 0]))
    assert part.queries().questions == ("", "Which?\na, b\nc")
    both = part.queries().followed_by(core.queries())
    assert both.questions == (*part.questions, *core.questions)
    assert from_tables(**tables()).questions == ()  # where the table does not say


def test_null_and_absent_are_missing_not_zero(tables) -> None:
    parts = tables(n=20)
    first, model = (parts["labels"].column(c)[0].as_py() for c in ("query_id", "model_id"))
    scores = parts["labels"].column("score").to_pylist()
    scores[0] = None
    parts["labels"] = parts["labels"].set_column(2, "score", pa.array(scores)).slice(0, 78)
    core = from_tables(**parts)
    assert np.isnan(core.labels[core.query_ids.index(first), core.model_ids.index(model)])
    assert np.isnan(core.labels).sum() == 3
    assert core.coverage == pytest.approx(77 / 80)


def test_a_measure_nobody_metered_for_some_model_does_not_exist(tables) -> None:
    # Else that model would be free of charge.
    parts = tables(n=20)
    cost = [
        None if model == "model-2" else value
        for model, value in zip(
            parts["responses"].column("model_id").to_pylist(),
            parts["responses"].column("cost_usd").to_pylist(),
            strict=True,
        )
    ]
    parts["responses"] = parts["responses"].set_column(4, "cost_usd", pa.array(cost, pa.float64()))
    core = from_tables(**parts)
    assert set(core.costs) == {"tokens", "params"}
    assert "latency" not in from_tables(**tables(n=20)).costs


def test_labels_of_removed_models_are_ignored(tables) -> None:
    parts = tables(n=20)
    parts["models"] = parts["models"].slice(0, 3)
    core = from_tables(**parts)
    assert core.labels.shape == (20, 3)
    assert not np.isnan(core.labels).any()


def test_duplicate_groups_are_numbered_and_singletons_stay_apart(tables) -> None:
    parts = tables(n=6)
    ids = sorted(parts["queries"].column("query_id").to_pylist())
    parts["duplicates"] = pa.table(
        {
            "query_id": [ids[1], ids[4]],
            "encoder": ["e", "e"],
            "threshold": [0.99, 0.99],
            "group_id": [ids[1], ids[1]],
        }
    )
    groups = from_tables(**parts).groups
    assert groups[1] == groups[4]
    assert len(set(groups.tolist())) == 5


def test_incomplete_embeddings_are_refused(tables) -> None:
    parts = tables(n=20)
    parts["embeddings"] = parts["embeddings"].slice(3)
    with pytest.raises(BadInput, match="17 of 20 queries"):
        from_tables(**parts)


def test_an_unknown_scheme_or_an_empty_split_is_named(tables) -> None:
    core = from_tables(**tables(n=20))
    with pytest.raises(BadInput, match="no split scheme 'sparse'"):
        core.rows("sparse", "test")
    parts = tables(n=20)
    parts["splits"] = parts["splits"].set_column(2, "split", pa.array(["train"] * 20))
    with pytest.raises(BadInput, match="holds no query"):
        from_tables(**parts).rows("dense", "test")


def test_nothing_to_evaluate_is_refused(tables) -> None:
    parts = tables(n=20)
    parts["queries"] = parts["queries"].slice(0, 0)
    with pytest.raises(BadInput, match="0 queries and 4 models"):
        from_tables(**parts)


def test_several_samples_of_a_cell_are_averaged() -> None:
    known = pa.array(["a", "b"])
    rows = codes(pa.chunked_array([["a", "a", "zz"]]), known)
    assert rows.tolist() == [0, 0, -1]
    found = dense(rows, np.array([1, 1, 0]), pa.chunked_array([[1.0, None, 5.0]]), (2, 2))
    assert found[0, 1] == 1.0
    assert np.isnan(found).sum() == 3


@pytest.mark.parametrize(
    ("vectors", "says"),
    [
        # Six numbers for three queries: each got a neighbour's.
        ([[1.0], [1.0, 0.0, 0.0], [1.0, 0.0]], "different lengths"),
        ([None, [1.0, 0.0], [1.0, 0.0, 0.0, 1.0]], "different lengths"),
        ([[], [], []], "empty or not finite"),
        ([[1.0, 0.0], [float("nan"), 0.0], [1.0, 0.0]], "empty or not finite"),
        ([[1.0, 0.0], [1e308, 0.0], [1.0, 0.0]], "empty or not finite"),
        ([[1.0, None], [1.0, 0.0], [1.0, 0.0]], "empty or not finite"),
        ([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "two for one query"),
    ],
)
def test_vectors_that_are_not_one_for_each_query_are_refused(vectors, says) -> None:
    ids = ["q1", "q2", "q3", "q3"][: len(vectors)]
    given = pa.table(
        {
            "query_id": ids,
            "encoder": ["e"] * len(ids),
            "vector": pa.array(vectors, pa.list_(pa.float64())).cast(pa.list_(pa.float32())),
        }
    )
    with pytest.raises(BadInput, match=says):
        encoder_vectors(given, pa.array(["q1", "q2", "q3"]), None)
