"""Batch, mean and pair rules against linear and integer programs solved by SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.zoo.run import (
    RULES,
    batch_budget,
    mean_budget,
    quantile_threshold,
    refuse,
    similarity_minus_cost,
    supported,
)
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import traits_of

RNG = np.random.default_rng(0)


def test_a_batch_within_a_budget_is_close_to_the_best_of_all_assignments() -> None:
    for _ in range(20):
        scores, cost = RNG.random((5, 3)), RNG.random((5, 3)) + 0.1
        budget = float(cost.min(axis=1).sum() + 0.8)
        choice = batch_budget(scores, cost, budget)
        rows = np.arange(5)
        assert cost[rows, choice].sum() <= budget + 1e-9
        best = max(
            scores[rows, list(c)].sum()
            for c in itertools.product(range(3), repeat=5)
            if cost[rows, list(c)].sum() <= budget
        )
        # A relaxation: short of the optimum by at most one question's upgrade.
        assert best - scores[rows, choice].sum() <= (scores.max(1) - scores.min(1)).max()
    assert batch_budget(scores, cost, 1e9).tolist() == scores.argmax(axis=1).tolist()
    with pytest.raises(BadInput, match="below"):
        batch_budget(scores, cost, 0.01)
    with pytest.raises(BadInput, match="unknown"):
        batch_budget(scores, np.full((5, 3), np.nan), 9.0)


def test_a_mean_budget_is_the_linear_program() -> None:
    scores, cost = RNG.random((30, 4)), np.array([0.1, 0.5, 1.0, 2.0])
    for budget in (0.1, 0.3, 0.9, 3.0):
        mix = mean_budget(scores, cost, budget)
        assert np.allclose(mix.sum(axis=1), 1)
        assert (mix @ cost).max() <= budget + 1e-9
        for row, p in zip(scores, mix, strict=True):
            best = linprog(-row, A_ub=[cost], b_ub=[budget], A_eq=[np.ones(4)], b_eq=[1])
            assert row @ p == pytest.approx(-best.fun, abs=1e-7)
    with pytest.raises(BadInput, match="above the budget"):
        mean_budget(scores, cost, 0.05)


def test_a_share_of_a_pair_is_kept_exactly() -> None:
    wanted = RNG.random(100).round(1)
    for share in (0.0, 0.37, 1.0):
        assert quantile_threshold(wanted, share).sum() == round(100 * share)
    chosen = quantile_threshold(wanted, 0.4)
    assert wanted[chosen].min() >= wanted[~chosen].max()


def test_similarity_gives_way_to_cost() -> None:
    similarity, cost = np.array([[0.9, 0.8]]), np.array([2.0, 1.0])
    assert similarity_minus_cost(similarity, cost, 0.05, np.arange(2)).tolist() == [0]
    assert similarity_minus_cost(similarity, cost, 0.2, np.arange(2)).tolist() == [1]


@pytest.mark.parametrize("name", ROUTERS.names())
def test_what_a_router_does_not_support_is_said(name: str) -> None:
    scale = traits_of(ROUTERS.get(name)).scale
    can = supported(scale)
    assert "argmax" in can
    for rule in RULES:
        if rule in can:
            refuse(rule, scale, name)
        else:
            with pytest.raises(BadInput, match="rules for it"):
                refuse(rule, scale, name)
