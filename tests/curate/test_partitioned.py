"""Near-duplicates over slabs equal those over the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.curate.near_duplicates import near_duplicate_pairs
from pipelines.curate.partitioned import join_slabs, plan_slabs, search_slab
from pipelines.errors import BadInput


def cloud(seed, n, width=12, threshold=0.999):
    """Unit vectors with copies and with neighbours just inside and outside the threshold."""
    draw = np.random.default_rng(seed)
    base = draw.normal(size=(n, width))
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    step = draw.normal(size=(n, width))
    step -= (step * base).sum(axis=1, keepdims=True) * base
    step /= np.linalg.norm(step, axis=1, keepdims=True)
    angle = np.arccos(threshold) * draw.choice([0.2, 0.999, 1.001, 1.5], size=(n, 1))
    near = np.cos(angle) * base + np.sin(angle) * step
    some = draw.integers(0, n, n // 2)
    mixed = np.concatenate([base, near, base[some], base[some[:3]]]).astype(np.float32)
    return mixed[draw.permutation(len(mixed))]


def by_slabs(vectors, threshold, count):
    slabs = plan_slabs(vectors[::3], threshold, count)
    positions = slabs.positions(vectors)
    parts = []
    for slab in range(len(slabs)):
        rows = np.flatnonzero(slabs.members(positions, slab))
        parts.append(search_slab(rows, vectors[rows], threshold))
    return join_slabs(len(vectors), parts)


def same(left, right):
    for name in ("first", "left", "right", "similarity"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)


# 40 slabs of 0.02 are narrower than the radius of 0.045: borders span several slabs.
@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_slabs_find_what_one_search_finds(count):
    vectors = cloud(0, 800)
    whole = near_duplicate_pairs(vectors, 0.999)
    assert len(whole.left) > 300
    assert (whole.first != np.arange(len(vectors))).sum() > 300
    same(by_slabs(vectors, 0.999, count), whole)


@given(
    seed=st.integers(0, 10**6), count=st.integers(1, 12), threshold=st.sampled_from([0.9, 0.999])
)
@settings(deadline=None, max_examples=25)
def test_for_any_cloud_and_any_cuts(seed, count, threshold):
    vectors = cloud(seed, 60, width=6, threshold=threshold)
    same(by_slabs(vectors, threshold, count), near_duplicate_pairs(vectors, threshold))


def test_all_rows_alike_make_one_group():
    # Every cut falls on the same place; nothing may be lost or counted twice.
    vectors = np.tile(np.float32([[0.6, 0.8, 0, 0]]), (50, 1))
    joined = by_slabs(vectors, 0.999, 8)
    assert set(joined.first.tolist()) == {0}
    assert joined.count() == 50 * 49 // 2


def test_no_rows_and_no_slabs():
    joined = join_slabs(3, [])
    assert joined.first.tolist() == [0, 1, 2]
    assert joined.count() == 0


def test_a_zero_vector_is_refused():
    vectors = cloud(1, 10)
    slabs = plan_slabs(vectors, 0.999, 2)
    with pytest.raises(BadInput, match="zero"):
        slabs.positions(np.zeros((1, 12), np.float32))
