"""Pair routers on planted preferences."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import rankdata

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.routers import PAIR_ROUTERS, Examples, Queries
from routeyard.pipelines.routers.pairs import (
    Battles,
    from_labels,
    from_preferences,
)


def questions(n: int, seed: int, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors, and whether the large model is needed: the sign of the first coordinate."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, d))
    vectors[:, 0] *= 3
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), vectors[:, 0] > 0


def preferences(n: int = 400, seed: int = 0) -> tuple[pa.Table, dict[str, np.ndarray]]:
    """Large wins where needed, else ties, and loses a third; sides are swapped at random.

    A third model always loses.
    """
    vectors, needed = questions(n, seed)
    rng = np.random.default_rng(seed + 1)
    rows = []
    for i in range(n):
        other = "weak" if i % 5 == 0 else "small"
        wins = bool(needed[i]) or other == "weak"
        loses = not wins and i % 3 == 1
        swapped = bool(rng.random() < 0.5)
        rows.append(
            {
                "query_id": f"q{i}",
                "model_a": other if swapped else "large",
                "model_b": "large" if swapped else other,
                "winner_model_a": int((wins and not swapped) or (loses and swapped)),
                "winner_model_b": int((wins and swapped) or (loses and not swapped)),
                "winner_tie": int(not wins and not loses),
            }
        )
    return pa.Table.from_pylist(rows), {f"q{i}": vectors[i] for i in range(n)}


@pytest.fixture(scope="module")
def battles() -> Battles:
    table, vectors = preferences()
    held = frozenset(f"q{i}" for i in range(0, 400, 7))
    return from_preferences(table, vectors, validation=held)


@pytest.mark.parametrize("name", sorted(PAIR_ROUTERS.builtin))
def test_pair_routers_learn_where_the_large_model_is_needed(name: str, battles: Battles) -> None:
    router = PAIR_ROUTERS.get(name)()
    router.fit(battles, "small", "large")
    vectors, needed = questions(300, 9)
    found = router.scores(Queries(tuple(map(str, range(300))), np.array(["t"] * 300), vectors))
    assert found.shape == (300,)
    assert found.min() >= 0
    assert found.max() <= 1
    assert found[needed].mean() > found[~needed].mean() + 0.05
    # Order of scores: nearly every needed question in the upper half, ties at their mid-rank
    # (the nearest battle alone has two scores, and the median is one of them).
    assert np.mean(rankdata(found)[needed] > (len(found) + 1) / 2) > 0.75


def test_a_pair_has_fewer_examples_than_a_pool_and_other_settings_are_tried(
    battles: Battles,
) -> None:
    # Those of a pool's routers by the same names: more neighbours, narrower networks.
    knn, mlp = PAIR_ROUTERS.get("pair-knn")(), PAIR_ROUTERS.get("pair-mlp")()
    vectors, won = battles.of_pair("small", "large")
    asked = questions(5, 9)[0]
    knn.fit(dataclasses.replace(battles, validation=None), "small", "large")
    near = np.argsort(-(asked @ vectors.T), axis=1, kind="stable")[:, :80]
    expected = (won[near].sum(axis=1) + won.mean()) / 81
    queries = Queries(tuple(map(str, range(5))), np.array(["t"] * 5), asked)
    np.testing.assert_allclose(knn.scores(queries), expected)
    mlp.fit(from_preferences(*preferences(60)), "small", "large")
    assert mlp._router.width in (32, 128)


@pytest.mark.parametrize("name", sorted(PAIR_ROUTERS.builtin))
def test_swapping_sides_of_all_records_changes_nothing_of_substance(name: str) -> None:
    # winner_model_a belongs to model_a wherever it stands.
    table, vectors = preferences(120)
    swapped = table.rename_columns(
        ["query_id", "model_b", "model_a", "winner_model_b", "winner_model_a", "winner_tie"]
    )
    test = Queries(tuple(map(str, range(50))), np.array(["t"] * 50), questions(50, 9)[0])
    found = []
    for part in (table, swapped):
        router = PAIR_ROUTERS.get(name)()
        router.fit(from_preferences(part, vectors), "small", "large")
        found.append(router.scores(test))
    assert np.allclose(found[0], found[1], atol=0.05)


def test_ties_teach_the_printed_forms_nothing() -> None:
    table, vectors = preferences(60)
    battles = from_preferences(table, vectors)
    use = battles.outcome != 0.5
    assert 0 < use.sum() < 60
    kept = dataclasses.replace(
        battles, vectors=battles.vectors[use], first=battles.first[use],
        second=battles.second[use], outcome=battles.outcome[use],
    )  # fmt: skip
    asked = Queries(("a",), np.array(["t"]), questions(1, 5)[0])
    for name in ("pair-mf-as-printed", "pair-mlp-as-printed"):
        found = []
        for part in (battles, kept):
            router = PAIR_ROUTERS.get(name)(epochs=2)
            router.fit(part, "small", "large")
            found.append(router.scores(asked))
        assert np.array_equal(*found)
        with pytest.raises(BadInput, match="all preference records are ties"):
            router.fit(dataclasses.replace(battles, outcome=np.full(60, 0.5)), "small", "large")


def test_test_questions_can_be_left_out() -> None:
    table, vectors = preferences(50)
    found = from_preferences(table, vectors, leave_out=frozenset(f"q{i}" for i in range(40)))
    assert len(found.outcome) == 10


def test_labels_become_battles_and_missing_ones_do_not() -> None:
    queries = Queries(("a", "b", "c", "d"), np.array(["t"] * 4), np.eye(4, dtype=np.float32))
    labels = np.array([[1, 0], [0, 1], [1, 1], [np.nan, 1]], dtype=float)
    found = from_labels(Examples(queries, ("large", "small"), labels), "small", "large")
    assert found.outcome.tolist() == [1.0, 0.0, 0.5]
    assert found.of_pair("small", "large")[1].tolist() == [1.0, 0.0, 0.5]


def test_unknown_models_and_missing_embeddings_are_named() -> None:
    table, vectors = preferences(20)
    found = from_preferences(table, vectors)
    with pytest.raises(BadInput, match="'gpt' is in no preference record"):
        found.of_pair("small", "gpt")
    with pytest.raises(BadInput, match="never meet"):
        found.of_pair("small", "weak")
    del vectors["q3"]
    with pytest.raises(BadInput, match="no embedding, such as q3"):
        from_preferences(table, vectors)
    with pytest.raises(BadInput, match="no preference record is left"):
        from_preferences(table, vectors, leave_out=frozenset(table.column("query_id").to_pylist()))
