"""Mean budgets against linear programs; what a rule refuses; reworded questions."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from routeyard.flows.evaluation.released import robust
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


def written(path: Path, rows: dict[str, str], second: str = "model_id") -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("query_id", second), *rows.items()])
    return path


def test_reworded_questions_that_keep_their_model(tmp_path: Path) -> None:
    full = written(tmp_path / "full.csv", {"1": "a", "2": "b", "03": "c", "4": "a"})
    other = written(tmp_path / "other.csv", {"1": "a", "2": "c", "03": "c", "9": "a"})
    found = robust(full, other)
    assert (found.name, found.level) == ("robustness", "ok")
    assert found.says == "66.7% of 3 reworded questions keep their model"


def test_tables_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    full = written(tmp_path / "full.csv", {"1": "a"})
    with pytest.raises(BadInput, match="no reworded question has the id"):
        robust(full, written(tmp_path / "other.csv", {"2": "a"}))
    with pytest.raises(BadInput, match="no column 'model_id'"):
        robust(full, written(tmp_path / "wrong.csv", {"1": "a"}, "chosen"))
