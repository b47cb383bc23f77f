"""Mean budgets against linear programs solved by SciPy; what a rule refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.zoo.run import (
    RULES,
    mean_budget,
    refuse,
    similarity_minus_cost,
)
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import traits_of

RNG = np.random.default_rng(0)


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


def test_similarity_gives_way_to_cost() -> None:
    similarity, cost = np.array([[0.9, 0.8]]), np.array([2.0, 1.0])
    assert similarity_minus_cost(similarity, cost, 0.05, np.arange(2)).tolist() == [0]
    assert similarity_minus_cost(similarity, cost, 0.2, np.arange(2)).tolist() == [1]


@pytest.mark.parametrize("name", ROUTERS.names())
def test_what_a_router_does_not_support_is_said(name: str) -> None:
    scale = traits_of(ROUTERS.get(name)).scale
    assert scale in RULES["argmax"][0]
    for rule, (scales, _) in RULES.items():
        if scale in scales:
            refuse(rule, scale, name)
        else:
            with pytest.raises(BadInput, match="rules for it"):
                refuse(rule, scale, name)
