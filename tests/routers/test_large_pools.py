"""What makes large pools affordable gives what the plain loops give."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from routeyard.pipelines.routers import trees as forest
from routeyard.pipelines.routers.neighbours import MOST, POINTS, Wins, replayed, results
from routeyard.pipelines.routers.networks import ordered
from routeyard.pipelines.routers.trees import grow, per_tree

RNG = np.random.default_rng(5)


def labels(n: int, m: int, *, levels: int) -> NDArray[np.float64]:
    """(n, m) of so many distinct values, a tenth unknown."""
    found = RNG.integers(0, levels, (n, m)) / (levels - 1)
    found[RNG.random((n, m)) < 0.1] = np.nan
    return found


def counted(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Wins of i over j by a loop."""
    n, m = y.shape
    won = np.zeros((n, m, m))
    for q in range(n):
        for i in range(m):
            for j in range(m):
                if i != j and not np.isnan(y[q, i]) and not np.isnan(y[q, j]):
                    won[q, i, j] = 1.0 if y[q, i] > y[q, j] else 0.5 * (y[q, i] == y[q, j])
    return won


@pytest.mark.parametrize("levels", [2, 3, 40])
def test_wins_by_products_are_counted_wins(levels: int) -> None:
    y = labels(60, 7, levels=levels)
    assert (len(np.unique(y[~np.isnan(y)])) > MOST) == (levels == 40)
    each, wins = counted(y), Wins(y)
    assert np.array_equal(results(y), each)
    assert np.array_equal(wins.total(), each.sum(axis=0))
    rows = RNG.integers(0, 60, (5, 9))
    assert np.array_equal(wins.among(rows), np.stack([each[r].sum(axis=0) for r in rows]))
    member = np.array([0, 1, 0, 2, 2, 1, 0])
    want = np.zeros((60, 3, 3))
    for i, j in np.ndindex(7, 7):
        if member[i] != member[j]:
            want[:, member[i], member[j]] += each[:, i, j]
    assert np.array_equal(wins.joined(member, 3), want)


@pytest.mark.parametrize("m", [1, 2, 3, 6, 7])
def test_pairs_replayed_together_are_pairs_replayed_in_order(m: int) -> None:
    y, near = labels(30, m, levels=2), RNG.integers(0, 30, (4, 5))
    begin = 1000 + 100 * RNG.normal(size=m)
    for q, neighbours in enumerate(near):
        rating = begin.copy()
        for row in neighbours[::-1]:
            for a in range(m):
                for b in range(a + 1, m):
                    if np.isnan(y[row, a]) or np.isnan(y[row, b]):
                        continue
                    expected = 1 / (1 + np.exp(-(rating[a] - rating[b]) / POINTS))
                    change = 32 * ((np.sign(y[row, a] - y[row, b]) + 1) / 2 - expected)
                    rating[a] += change
                    rating[b] -= change
        assert replayed(begin, y, near)[q] == pytest.approx(rating, rel=1e-12)


def test_ranking_with_unknown_and_equal_places_is_the_loop() -> None:
    y = labels(20, 6, levels=3)
    y[0] = np.nan  # a question without labels
    y[1] = 1.0  # and one without an order
    known = ~np.isnan(y)
    scores = RNG.normal(size=y.shape)
    each = []
    for q in range(len(y)):
        terms = []
        for i in np.flatnonzero(known[q]):
            below = [scores[q, j] for j in np.flatnonzero(known[q]) if y[q, j] < y[q, i]]
            if below:
                total = np.exp([scores[q, i], *below]).sum()
                terms.append(np.log(total) - scores[q, i])
        if terms:
            each.append(np.mean(terms))
    place, seen = torch.tensor(np.nan_to_num(y, nan=-1.0)), torch.tensor(known.astype(float))
    found = torch.tensor(scores, requires_grad=True)
    loss = ordered(found, place, seen)
    assert float(loss.detach()) == pytest.approx(float(np.mean(each)))
    loss.backward()
    assert torch.isfinite(found.grad).all()
    assert float(found.grad[:2].abs().sum()) == 0.0


def test_leaves_of_a_forest_with_many_outputs_hold_the_means_of_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = RNG.normal(size=(400, 4)).astype(np.float32)
    m = 2 * forest.DIRECTIONS + 8
    chance = np.where(x[:, [0]] > 0, 0.9, 0.1) * np.ones(m)
    chance[:, : m // 2] = 1 - chance[:, : m // 2]
    y = (RNG.random((400, m)) < chance).astype(float)
    few = grow(x, y, trees=5, depth=3, leaf=20, features=1.0, seed=1)
    got = per_tree(few, x)[0]
    assert got.shape == (400, m)
    # Planted: the sign of the first coordinate; a leaf is a mean of the rows it holds.
    assert np.abs(got - chance).mean() < 0.08
    monkeypatch.setattr(forest, "DIRECTIONS", m)
    every = per_tree(grow(x, y, trees=5, depth=3, leaf=20, features=1.0, seed=1), x)[0]
    # The same bootstraps and, here, the same first split: the means differ little.
    assert np.abs(got - every).mean() < 0.03
