from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.curate import search as module
from routeyard.pipelines.curate.search import close_pairs

Array = np.ndarray[Any, Any]


def small(patch: pytest.MonkeyPatch, core: int = 4, tile: int = 5) -> None:
    """Cores and tiles so small that a few points are cut many times."""
    patch.setattr(module, "CORE", core)
    patch.setattr(module, "TILE", tile)


def found(points: Array, radius: float) -> list[tuple[int, int]]:
    pairs = [
        (min(i, j), max(i, j))
        for a, b in close_pairs(points.astype(np.float32), radius)
        for i, j in zip(a.tolist(), b.tolist(), strict=True)
    ]
    return sorted(pairs)


def within(points: Array, radius: float) -> set[tuple[int, int]]:
    points = points.astype(np.float32).astype(np.float64)
    distance = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    i, j = np.nonzero(np.triu(distance <= radius * radius, 1))
    return set(zip(i.tolist(), j.tolist(), strict=True))


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 150),
    k=st.integers(1, 6),
    radius=st.sampled_from([0.0, 0.01, 0.05, 0.3, 2.0]),
    grid=st.booleans(),
)
def test_no_pair_is_missed_and_none_comes_twice(
    seed: int, n: int, k: int, radius: float, grid: bool
) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-0.5, 0.5, (n, k))
    if grid:  # many equal coordinates: cuts fall on points
        points = np.round(points * 4) / 4
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        pairs = found(points, radius)
    assert len(pairs) == len(set(pairs))
    assert within(points, radius) <= set(pairs)
    assert set(pairs) <= within(points, float(np.sqrt(radius * radius + 3 * module.SLACK)))


def test_one_point_many_times_is_compared_tile_by_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    # No cut separates equal points: the work must stay in tiles, not recurse for ever.
    small(monkeypatch)
    blocks = list(close_pairs(np.ones((40, 3), dtype=np.float32), 0.0))
    assert max(len(a) for a, _ in blocks) <= 25
    assert sum(len(a) for a, _ in blocks) == 40 * 39 // 2


def test_far_points_are_cut_apart_instead_of_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    # The promise behind the speed: comparisons stay far below n².
    compared = 0
    real = module._compare

    def counted(extended: Array, reach: float, core: Array, border: Array, *more: Any) -> Any:
        nonlocal compared
        compared += len(core) * (len(core) + len(border))
        return real(extended, reach, core, border, *more)

    monkeypatch.setattr(module, "_compare", counted)
    points = np.random.default_rng(0).uniform(-0.5, 0.5, (20_000, 8)).astype(np.float32)
    for _ in close_pairs(points, 0.02):
        pass
    # Everything is compared with itself at least, and far less than all with all.
    assert 20_000 <= compared < 20_000**2 / 10


def test_crowded_tiles_are_looked_at_closer_and_lose_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small(monkeypatch)
    random = np.random.default_rng(1)
    # Points that crowd in the first two dimensions and are told apart by the third.
    points = np.column_stack([random.normal(0, 1e-3, (120, 2)), random.uniform(-1, 1, 120)])
    looked = []

    def closer(a: Array, b: Array, near: Array) -> Array:
        looked.append(len(a) * len(b))
        return near & (np.abs(points[a, 2][:, None] - points[b, 2]) <= 0.1)

    flat = points[:, :2].astype(np.float32)
    every = {
        (min(p), max(p))
        for a, b in close_pairs(flat, 0.1, closer)
        for p in zip(a.tolist(), b.tolist(), strict=True)
    }
    i, j = np.triu_indices(120, 1)
    near = np.abs(points[i, 2] - points[j, 2]) <= 0.1
    assert every == set(zip(i[near].tolist(), j[near].tolist(), strict=True))
    assert looked
