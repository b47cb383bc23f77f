"""Trade-off metrics of a pair: properties, and where they have no value or no interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.evaluate.metrics import tradeoff
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws
from routeyard.pipelines.evaluate.results import ModelPair, trade
from routeyard.pipelines.evaluate.settings import Bands

GRID = np.linspace(0, 1, 200_001)


@st.composite
def duels(draw):
    n = draw(st.integers(2, 30))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    # Ties on purpose: five distinct scores.
    scores = rng.integers(0, 5, n) / 5 if draw(st.booleans()) else rng.random(n)
    small = (rng.random(n) < 0.5).astype(float)
    large = (rng.random(n) < 0.8).astype(float)
    return scores, small, large


@given(duels(), st.integers(0, 1000))
@settings(deadline=None, max_examples=50)
def test_resampled_polylines_equal_repeated_queries(duel, seed) -> None:
    # Counts must do what repeating the drawn questions does, ties included.
    scores, small, large = duel
    drawn = np.random.default_rng(seed).integers(0, len(scores), (3, len(scores)))
    counts = np.array([np.bincount(d, minlength=len(scores)) for d in drawn], float)
    x, y = tradeoff.polyline(scores, small, large, counts)
    together = {
        "lpm": tradeoff.lpm(x, y), "hcr": tradeoff.hcr(x, y), "mpm": tradeoff.mpm(x, y),
        "apgr": tradeoff.apgr(x, y), "cpt": tradeoff.cpt(x, y, 0.8),
        "auroc": tradeoff.auroc(scores, small, counts),
    }  # fmt: skip
    for k, d in enumerate(drawn):
        a, b = tradeoff.polyline(scores[d], small[d], large[d])
        alone = {
            "lpm": tradeoff.lpm(a, b), "hcr": tradeoff.hcr(a, b), "mpm": tradeoff.mpm(a, b),
            "apgr": tradeoff.apgr(a, b), "cpt": tradeoff.cpt(a, b, 0.8),
            "auroc": tradeoff.auroc(scores[d], small[d]),
        }  # fmt: skip
        for name, value in alone.items():
            assert float(together[name][k]) == pytest.approx(float(value), abs=1e-9, nan_ok=True), (
                name
            )


@given(duels())
@settings(deadline=None)
def test_constant_scores_lie_on_the_chord_and_predict_nothing(duel) -> None:
    _, small, large = duel
    x, y = tradeoff.polyline(np.ones(len(small)), small, large)
    assert x.tolist() == [0.0, 1.0]
    assert y == pytest.approx([small.mean(), large.mean()], abs=1e-12)
    if 0 < small.sum() < len(small):
        assert float(tradeoff.auroc(np.ones(len(small)), small)) == pytest.approx(0.5)
    if large.mean() > small.mean():
        assert float(tradeoff.apgr(x, y)) == pytest.approx(0.5)


@given(duels(), st.integers(0, 1000))
@settings(deadline=None)
def test_no_router_is_above_the_oracle_curve(duel, seed) -> None:
    scores, small, large = duel
    oracle = np.interp(GRID[::1000], *tradeoff.polyline(large - small, small, large))
    routed = np.interp(GRID[::1000], *tradeoff.polyline(scores, small, large))
    assert np.all(routed <= oracle + 1e-9)


def test_nulls_come_with_reasons() -> None:
    equal = np.array([0.0, 1.0]), np.array([0.7, 0.7])
    assert np.isnan(tradeoff.hcr(*equal))
    assert "not more accurate" in tradeoff.why_null("hcr", *equal)
    early = np.array([0.0, 0.1, 1.0]), np.array([0.5, 0.8, 0.8])
    assert np.isnan(tradeoff.mpm(*early))
    assert "before the call rate 0.3" in tradeoff.why_null("mpm", *early)
    # A jump over the band touches it on no stretch: two equal thresholds make it vertical.
    bands = Bands(low=0.85, high=0.85)
    steep = np.array([0.0, 0.5, 0.5, 1.0]), np.array([0.5, 0.5, 0.8, 0.8])
    assert np.isnan(tradeoff.hcr(*steep, bands))
    assert "no call rate" in tradeoff.why_null("hcr", *steep, bands)


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
