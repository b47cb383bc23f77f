"""An AUROC over few failures says so, and claims no certainty."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.evaluate.metrics.bootstrap import Draws
from routeyard.pipelines.evaluate.results import ModelPair, trade


def auroc(n: int, failures: int):
    small = np.ones(n)
    small[:failures] = 0.0
    pair = ModelPair(np.arange(n), small, np.ones(n), ("small", "large"), small)
    done = trade(pair, Draws(n, 200, 0), "test", "perfect", 1 - small)
    return next(row for row in done.metrics if row.metric == "auroc")


@pytest.mark.parametrize(("n", "failures"), [(19, 1), (19, 4), (19, 15)])
def test_few_failures_or_successes_have_no_interval(n: int, failures: int) -> None:
    row = auroc(n, failures)
    assert (row.value, row.low, row.high) == (1.0, None, None)
    assert f"fails on {failures} of {n} questions" in row.reason
    assert "5 failures" in row.reason


def test_enough_failures_have_an_interval() -> None:
    row = auroc(40, 12)
    assert row.low is not None
    assert row.reason == "the small model fails on 12 of 40 questions"


def test_no_failure_has_no_area() -> None:
    row = auroc(19, 0)
    assert row.value is None
    assert row.reason == "the small model is always right, or always wrong"
