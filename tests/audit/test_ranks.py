"""Ranks of the audit are SciPy's, which it does not import."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata, spearmanr

from routeyard.pipelines.audit.answers import ranks
from routeyard.pipelines.audit.checks import _rank_correlation


def test_ranks_and_their_correlation_are_scipys_to_the_last_bit() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        n, digits = random.integers(2, 40), random.integers(1, 4)
        a, b = (np.round(random.random(n), digits) for _ in range(2))
        assert np.array_equal(ranks(a), rankdata(a))
        if np.ptp(a) and np.ptp(b):
            assert _rank_correlation(a, b) == float(spearmanr(a, b).statistic)


def test_equal_values_have_no_correlation_and_unknown_ones_an_unknown_one() -> None:
    rising = np.arange(3.0)
    assert _rank_correlation(np.ones(3), rising) == 0
    assert np.isnan(_rank_correlation(np.array([0.0, np.nan, 1.0]), rising))
