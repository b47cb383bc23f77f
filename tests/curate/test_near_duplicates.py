from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.near_duplicates.dedup import every_pair
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.curate import search
from routeyard.pipelines.curate import search as close_pairs
from routeyard.pipelines.curate import search as crowds
from routeyard.pipelines.curate.search import components, near_duplicate_pairs

Array = np.ndarray[Any, Any]


def brute_force(vectors: Array, threshold: float) -> Array:
    """(p, 2) by a full float64 product."""
    unit = vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    i, j = np.nonzero(np.triu(unit @ unit.T >= threshold, 1))
    return np.stack([i, j], axis=1)


def unit(rows: Array) -> Array:
    rows = np.asarray(rows, dtype=np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def jittered(seed: int, n: int, threshold: float, dimension: int = 24) -> Array:
    """Random unit vectors, then copies whose cosine straddles the threshold."""
    rng = np.random.default_rng(seed)
    base = unit(rng.normal(size=(n, dimension)))
    noise = rng.normal(size=base.shape)
    noise -= (noise * base).sum(axis=1, keepdims=True) * base
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    wanted = 1 - (1 - threshold) * rng.uniform(0.9, 1.1, size=(n, 1))
    copies = wanted * base + np.sqrt(1 - wanted**2) * noise
    every = np.concatenate([base, unit(copies), base[: n // 4]])
    return every[rng.permutation(len(every))]


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 120),
    dimension=st.integers(2, 48),
    threshold=st.sampled_from([0.6, 0.9, 0.99, 0.999, 0.9999]),
)
def test_same_pairs_as_brute_force(seed: int, n: int, dimension: int, threshold: float) -> None:
    vectors = jittered(seed, n, threshold, dimension)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(close_pairs, "CORE", 8)  # so that small sets are cut as large ones are
        pairs = near_duplicate_pairs(vectors, threshold)
    expected = brute_force(vectors, threshold)
    assert every_pair(pairs).tolist() == expected.tolist()
    assert pairs.count() == len(expected)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 90),
    threshold=st.sampled_from([0.6, 0.99, 0.999, 0.99999]),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    spread=st.sampled_from([1e-3, 0.02, 0.3]),
    many=st.sampled_from([0.0, 1.0]),
)
def test_crowds_join_and_count_what_their_pairs_would(
    seed: int, n: int, threshold: float, share: float, spread: float, many: float
) -> None:
    rng = np.random.default_rng(seed)
    crowd = unit(np.ones((n, 12)) + spread * rng.normal(size=(n, 12)))
    vectors = np.concatenate([crowd, jittered(seed, n, threshold, 12), crowd[: n // 3]])
    vectors = vectors[rng.permutation(len(vectors))]
    alike = rng.random(len(vectors)) < share
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("CORE", 8), ("TILE", 16), ("DENSE", 0.05)):
            patch.setattr(close_pairs, name, value)
        patch.setattr(crowds, "MANY", many)
        pairs = near_duplicate_pairs(vectors, threshold, alike)
    expected = brute_force(vectors, threshold)
    assert pairs.count() == len(expected)
    whole = components(len(vectors), *expected.T)
    listed = every_pair(pairs)
    left = np.concatenate([pairs.joined.left, listed[:, 0]])
    right = np.concatenate([pairs.joined.right, listed[:, 1]])
    assert components(len(vectors), left, right).tolist() == whole.tolist()
    # Of rows that are not alike every pair is listed.
    apart = {(a, b) for a, b in expected.tolist() if not (alike[a] and alike[b])}
    assert apart <= {(a, b) for a, b in listed.tolist()}


def test_a_crowd_takes_memory_of_its_rows_and_not_of_its_pairs() -> None:
    rng = np.random.default_rng(0)
    vectors = unit(np.ones((6000, 48)) + 1e-3 * rng.normal(size=(6000, 48)))
    pairs = near_duplicate_pairs(vectors, 0.999, np.ones(6000, dtype=bool))
    assert pairs.count() == 6000 * 5999 // 2
    assert len(pairs.left) == 0
    assert len(pairs.joined.left) < 6 * 6000
    assert set(components(6000, pairs.joined.left, pairs.joined.right)) == {0}


def test_all_identical_is_one_class_not_a_million_pairs() -> None:
    vectors = np.repeat(unit(np.ones((1, 8))), 5000, axis=0)
    pairs = near_duplicate_pairs(vectors, 0.999)
    assert len(pairs.left) == 0
    assert pairs.count() == 5000 * 4999 // 2


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_chain_just_above_and_below_the_threshold(factor: float) -> None:
    # Neighbours on a circle: each is close to the next only, or to none.
    step = np.arccos(0.999) * factor
    angles = np.arange(100) * step  # less than one turn
    vectors = np.zeros((100, 16), dtype=np.float32)
    vectors[:, 0], vectors[:, 1] = np.cos(angles), np.sin(angles)
    pairs = near_duplicate_pairs(vectors, 0.999)
    assert every_pair(pairs).tolist() == brute_force(vectors, 0.999).tolist()
    assert len(set(components(100, pairs.left, pairs.right))) == (1 if factor < 1 else 100)


def test_collinear_vectors_are_duplicates_at_any_length_but_not_opposites() -> None:
    ray = np.arange(1, 9, dtype=np.float32)
    vectors = np.stack([ray, 3 * ray, 1e-3 * ray, -ray])
    assert every_pair(near_duplicate_pairs(vectors, 0.999)).tolist() == [[0, 1], [0, 2], [1, 2]]


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_zero_and_nan_vectors_are_refused(bad: float) -> None:
    vectors = np.ones((5, 4), dtype=np.float32)
    vectors[3] = bad
    with pytest.raises(BadInput, match=r"zero or not finite") as caught:
        near_duplicate_pairs(vectors, 0.999)
    assert caught.value.where == "rows [3]"


@pytest.mark.parametrize("threshold", [0, -0.5, 1.5, float("nan")])
def test_threshold_outside_range(threshold: float) -> None:
    with pytest.raises(BadInput, match="threshold must lie in"):
        near_duplicate_pairs(np.ones((2, 2), dtype=np.float32), threshold)


def test_dense_sets_are_worked_on_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    # A cluster where everything is near everything must not be queried at once.
    monkeypatch.setattr(close_pairs, "TILE", 64)
    rng = np.random.default_rng(3)
    vectors = unit(np.ones((300, 12)) + 0.02 * rng.normal(size=(300, 12)))
    pairs = near_duplicate_pairs(vectors, 0.999)
    assert every_pair(pairs).tolist() == brute_force(vectors, 0.999).tolist()
    assert pairs.count() > 5000


def test_rows_that_share_a_hash_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    # With weights of zero every row has the same hash.
    class Zeros:
        def integers(self, *args: object, **kw: object) -> Array:
            return np.zeros(4, dtype=np.uint64)

    monkeypatch.setattr(search.np.random, "default_rng", lambda seed: Zeros())
    vectors = unit(np.eye(8)[[0, 1, 0, 2, 1]])
    assert search._first_copies(vectors).tolist() == [0, 1, 0, 3, 4]
    assert every_pair(near_duplicate_pairs(vectors, 0.999)).tolist() == [[0, 2], [1, 4]]


def test_empty_and_single() -> None:
    assert near_duplicate_pairs(np.empty((0, 8), dtype=np.float32), 0.9).count() == 0
    assert near_duplicate_pairs(np.ones((1, 8), dtype=np.float32), 0.9).count() == 0
