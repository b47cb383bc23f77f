"""Near-duplicates over parts equal those over the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.curate.search import (
    Cut,
    Partition,
    join_parts,
    near_duplicate_pairs,
    plan_parts,
    search,
    search_part,
)


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


def by_parts(vectors, threshold, count):
    return searched(vectors, threshold, plan_parts(vectors[::3], threshold, count))


def searched(vectors, threshold, partition):
    members = list(partition.members(partition.positions(vectors)))
    assert sorted(part for part, _ in members) == list(range(len(partition)))
    found = [search_part(rows, vectors[rows], threshold) for _, rows in members]
    return join_parts(len(vectors), found)


def same(left, right):
    for name in ("first", "left", "right", "similarity"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_parts_find_what_one_search_finds(count):
    vectors = cloud(0, 800)
    whole = near_duplicate_pairs(vectors, 0.999)
    assert len(whole.left) > 300
    assert (whole.first != np.arange(len(vectors))).sum() > 300
    same(by_parts(vectors, 0.999, count), whole)


def test_parts_narrower_than_the_radius_lose_nothing():
    # Cuts 0.02 apart and a radius of 0.045: a pair may lie across several cuts.
    vectors = cloud(0, 800)
    planned = plan_parts(vectors, 0.999, 1)
    places = np.arange(-0.3, 0.3, 0.02).tolist()
    following = [*range(1, len(places)), -1 - len(places)]
    cuts = [Cut(0, at, -1 - i, following[i]) for i, at in enumerate(places)]
    narrow = Partition(planned.directions, tuple(cuts), planned.reach)
    same(searched(vectors, 0.999, narrow), near_duplicate_pairs(vectors, 0.999))


def test_more_parts_are_smaller_parts():
    vectors = cloud(2, 4000)
    sizes = []
    for count in (1, 4, 16):
        partition = plan_parts(vectors, 0.999, count)
        assert len(partition) == count
        sizes.append(max(len(rows) for _, rows in partition.members(partition.positions(vectors))))
    assert sizes[0] > 3 * sizes[1] > 9 * sizes[2]


@given(
    seed=st.integers(0, 10**6), count=st.integers(1, 12), threshold=st.sampled_from([0.9, 0.999])
)
@settings(deadline=None, max_examples=25)
def test_for_any_cloud_and_any_cuts(seed, count, threshold):
    vectors = cloud(seed, 60, width=6, threshold=threshold)
    same(by_parts(vectors, threshold, count), near_duplicate_pairs(vectors, threshold))


def test_all_rows_alike_make_one_group():
    # No cut makes a part smaller; nothing may be lost or counted twice.
    vectors = np.tile(np.float32([[0.6, 0.8, 0, 0]]), (50, 1))
    joined = by_parts(vectors, 0.999, 8)
    assert set(joined.first.tolist()) == {0}
    assert joined.count() == 50 * 49 // 2


def test_no_rows_and_no_parts():
    joined = join_parts(3, [])
    assert joined.first.tolist() == [0, 1, 2]
    assert joined.count() == 0


def test_a_zero_vector_is_refused():
    vectors = cloud(1, 10)
    partition = plan_parts(vectors, 0.999, 2)
    with pytest.raises(BadInput, match="zero"):
        partition.positions(np.zeros((1, 12), np.float32))


def test_many_rows_are_parted_by_themselves_and_the_groups_are_the_same(monkeypatch):
    from routeyard.pipelines.curate import dedup as rule
    from routeyard.pipelines.curate import search as partitioned

    vectors = cloud(3, 900)
    texts, seen = ["text"] * len(vectors), [None] * len(vectors)
    whole = rule.group_rows(vectors, texts, seen, threshold=0.999)
    parts: list[int] = []

    def counted(rows, part, threshold):
        parts.append(len(rows))
        return search_part(rows, part, threshold)

    monkeypatch.setattr(partitioned, "search_part", counted)
    assert not parts
    same(search(vectors, 0.999, part_rows=700), near_duplicate_pairs(vectors, 0.999))
    assert len(parts) > 2
    assert max(parts) < len(vectors)
    # The rule itself goes that way once there are more rows than one search takes.
    parts.clear()
    monkeypatch.setattr(
        rule, "search", lambda v, t, alike: search(v, t, alike=alike, part_rows=700)
    )
    again = rule.group_rows(vectors, texts, seen, threshold=0.999)
    assert len(parts) > 2
    np.testing.assert_array_equal(again.label, whole.label)
    assert (again.pairs, again.pairs_counted) == (whole.pairs, whole.pairs_counted)


def test_a_vector_of_zeros_among_many_is_refused():
    vectors = cloud(4, 300)
    vectors[5] = 0
    with pytest.raises(BadInput, match="zero"):
        search(vectors, 0.999, part_rows=100)
