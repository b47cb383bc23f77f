"""Areas and QNC of many resamples at once, and where they have no value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.evaluate.metrics.areas import audc, monotone, peak_accuracy, qnc
from routeyard.pipelines.evaluate.metrics.selection import (
    penalties,
)

unit = st.floats(0, 1, allow_nan=False, width=32)


@st.composite
def curves(draw):
    k = draw(st.integers(1, 8))
    cost = draw(st.lists(st.floats(0, 10, width=32), min_size=k, max_size=k))
    accuracy = draw(st.lists(unit, min_size=k, max_size=k))
    return np.array(cost, float), np.array(accuracy, float)


@given(st.lists(curves(), min_size=2, max_size=4), st.floats(0, 4), st.floats(0.5, 5))
@settings(deadline=None)
def test_all_resamples_at_once_equal_one_at_a_time(many, low, width) -> None:
    k = min(len(cost) for cost, _ in many)
    cost = np.array([c[:k] for c, _ in many])
    accuracy = np.array([a[:k] for _, a in many])
    start = np.linspace(0, 1, len(many))
    together = audc(cost, accuracy, low, low + width, start)
    apart = [
        float(audc(c, a, low, low + width, s))
        for c, a, s in zip(cost, accuracy, start, strict=True)
    ]
    assert together == pytest.approx(apart, abs=1e-12)
    target = np.full(len(many), 0.5)
    alone = [float(qnc(c, a, 0.5, 2.0)) for c, a in zip(cost, accuracy, strict=True)]
    assert qnc(cost, accuracy, target, 2.0) == pytest.approx(alone, abs=1e-12, nan_ok=True)


def test_a_budget_too_small_for_the_router_earns_the_cheapest_model_only() -> None:
    # A lone dear point must not be credited at budgets at which it cannot be bought.
    assert float(audc(np.array([5.0]), np.array([0.9]), 1.0, 5.0, 0.4)) == pytest.approx(0.4)


def test_equal_prices_give_null_not_zero() -> None:
    assert np.isnan(audc(np.array([1.0]), np.array([0.5]), 1.0, 1.0, 0.5))


def test_a_curve_that_never_reaches_the_best_model_has_no_qnc() -> None:
    assert np.isnan(qnc(np.array([1.0, 2.0]), np.array([0.2, 0.3]), 0.4, 1.0))


def test_cost_that_falls_along_the_sweep_does_not_turn_the_curve_back() -> None:
    assert monotone(np.array([1.0, 3.0, 2.0])).tolist() == [1.0, 3.0, 3.0]
    assert float(peak_accuracy(np.array([0.1, 0.3, 0.2]))) == 0.3


def test_the_sweep_runs_from_cheapest_to_any_price() -> None:
    weights = penalties(10)
    assert weights[0] == 1.0
    assert weights[-1] == 0.0
    assert np.all(np.diff(weights) < 0)
