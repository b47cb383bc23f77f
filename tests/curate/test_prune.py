from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.common.errors import RecipeError
from routeyard.pipelines.curate import prune as module
from routeyard.pipelines.curate.prune import ONE, greedy_order, jaccard_fixed, prune

Array = np.ndarray[Any, Any]


def naive_similarity(correct: Array, known: Array) -> list[list[int]]:
    """The definition, one pair and one query at a time, in exact integers."""
    m, q = correct.shape
    out = [[0] * m for _ in range(m)]
    for i in range(m):
        for j in range(m):
            both = either = 0
            for k in range(q):
                if known[i, k] and known[j, k]:
                    both += int(correct[i, k] and correct[j, k])
                    either += int(correct[i, k] or correct[j, k])
            out[i][j] = both * ONE // either if either else 0
    return out


def naive_order(
    similarity: list[list[int]],
    accuracy: Array,
    trade_off: float,
    target: int,
    protected: list[int],
) -> list[int]:
    """Every mean computed anew at every step."""
    alive = list(range(len(accuracy)))
    gone = []
    while len(alive) > max(target, 1):
        scores = []
        for i in alive:
            if i not in protected:
                mean = sum(similarity[i][j] for j in alive if j != i) / ((len(alive) - 1) * ONE)
                score = trade_off * accuracy[i] - (1 - trade_off) * mean
                scores.append((score, accuracy[i], -i))
        if not scores:
            break
        gone.append(-min(scores)[2])
        alive.remove(gone[-1])
    return gone


@settings(deadline=None, max_examples=60)
@given(
    m=st.integers(1, 9),
    q=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
    trade_off=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    missing=st.sampled_from([0.0, 0.2, 0.9]),
    target=st.integers(1, 4),
)
def test_equals_the_naive_reference(
    m: int, q: int, seed: int, trade_off: float, missing: float, target: int
) -> None:
    rng = np.random.default_rng(seed)
    correct = rng.random((m, q)) < 0.5
    known = rng.random((m, q)) >= missing
    if m > 2:
        correct[1], known[1] = correct[0], known[0]  # ties must break the same way
    similarity = jaccard_fixed(correct, known)
    assert similarity.tolist() == naive_similarity(correct, known)
    accuracy = (correct & known).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    protected = [0] if seed % 2 else []
    steps = greedy_order(
        similarity, accuracy, trade_off=trade_off, target=target, protected=protected
    )
    assert [step.model for step in steps] == naive_order(
        similarity.tolist(), accuracy, trade_off, target, protected
    )


def test_tiles_and_chunks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    correct, known = rng.random((37, 301)) < 0.4, rng.random((37, 301)) < 0.9
    whole = jaccard_fixed(correct, known)
    monkeypatch.setattr(module, "TILE", 5)
    monkeypatch.setattr(module, "CHUNK_BYTES", 7)
    assert (jaccard_fixed(correct, known) == whole).all()


def test_missing_labels_are_masked_not_wrong() -> None:
    # The trap: with zeros for missing, these two would share half of their answers.
    correct = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=bool)
    known = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=bool)
    assert jaccard_fixed(correct, known)[0, 1] == ONE
    assert jaccard_fixed(np.zeros((2, 3), dtype=bool), np.ones((2, 3), dtype=bool))[0, 1] == 0


@pytest.fixture
def tables(make_queries: Any, make_models: Any, make_labels: Any, qid: Any) -> dict[str, Any]:
    right = {"good": "1111", "twin": "1111", "other": "0011", "poor": "1000"}
    return {
        "queries": make_queries([{"name": str(i)} for i in range(4)]),
        "models": make_models(sorted(right)),
        "labels": make_labels(
            [(qid(str(i)), m, bits[i] == "1") for m, bits in right.items() for i in range(4)]
        ),
    }


def test_prune_keeps_the_order_with_scores(tables: dict[str, Any]) -> None:
    result = prune(tables, trade_off=0.5, target=2, protected=["twin"])
    order = result.figures["order"]
    assert [step["model_id"] for step in order] == ["poor", "other"]
    assert result.kept["models"].column("model_id").to_pylist() == ["good", "twin"]
    assert result.removed.column("reason").to_pylist() == ["pruned", "pruned"]
    # poor: accuracy 1/4; similarity 1/4 to good and twin, 0 to other.
    assert order[0]["score"] == pytest.approx(0.5 * 0.25 - 0.5 * (0.25 + 0.25 + 0) / 3)


def test_stop_rule_by_similarity(tables: dict[str, Any]) -> None:
    result = prune(tables, trade_off=0.5, max_mean_similarity=1.0)
    assert len(result.removed) == 0


def test_the_ends_of_the_trade_off_are_part_of_it(tables: dict[str, Any]) -> None:
    # Accuracy alone takes the poor one, similarity alone one of those that are most alike.
    gone = [prune(tables, trade_off=λ, target=3).removed["key"].to_pylist() for λ in (0, 1)]
    assert gone == [["twin"], ["poor"]]


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"trade_off": 0.5}, "stop rule"),
        ({"trade_off": 1.5, "target": 2}, "must lie in"),
        ({"trade_off": -0.1, "target": 2}, "must lie in"),
        ({"trade_off": 0.5, "target": 2, "protected": ["nobody"]}, "not in the pool"),
    ],
)
def test_bad_parameters(tables: dict[str, Any], parameters: Any, says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        prune(tables, **parameters)


def test_the_product_of_large_pools_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    # Sizes that no vector width divides; both products must be exact.
    draws = np.random.default_rng(1)
    known = draws.random((37, 501)) >= 0.2
    correct = (draws.random((37, 501)) < 0.6) & known
    small = module.jaccard_fixed(correct, known)
    monkeypatch.setattr(module, "LARGE", 0)
    assert np.array_equal(module.jaccard_fixed(correct, known), small)
