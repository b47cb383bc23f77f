"""Every figure that rests on drawn questions says how far it may be off."""

from __future__ import annotations

import pytest

from routeyard.pipelines.evaluate.run import evaluate
from tests.evaluate.metrics.test_registry import Fixed, awkward

#: Measured on a clock, not on questions.
WITHOUT = {"decision_cost", "decision_time"}


def test_every_metric_has_an_interval_that_holds_its_value() -> None:
    ticks = iter([0.0, 0.002] * 2)
    done = evaluate(
        awkward(5, 200, 5),
        {"a": lambda s: Fixed(5), "b": lambda s: Fixed(105)},
        all=True,
        resamples=200,
        points=7,
        pair=("m0", "m1"),
        clock=lambda: next(ticks),
        usd_per_hour=3.0,
    )
    rows = [row for row in done.metrics.to_pylist() if row["value"] is not None]
    rows = [row for row in rows if row["router"] == "a" and row["split"] == "test"]
    assert {row["metric"] for row in rows if row["low"] is None} == WITHOUT
    drawn = [row for row in rows if row["metric"] not in WITHOUT]
    assert len(drawn) > 60
    for row in drawn:
        assert row["low"] - 1e-9 <= row["value"] <= row["high"] + 1e-9, row
    assert sum(row["low"] < row["high"] for row in drawn) > 0.8 * len(drawn)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_what_drawing_again_pushes_aside_has_an_interval_that_holds_it(seed: int) -> None:
    # Distances and calibration errors cannot be negative: each resample adds to them.
    routers = {"a": lambda s: Fixed(5), "b": lambda s: Fixed(105)}
    done = evaluate(
        awkward(seed, 200, 5), routers, all=True, resamples=200, points=7, pair=("m0", "m1")
    )
    rows = [row for row in done.metrics.to_pylist() if row["low"] is not None]
    assert {row["metric"] for row in rows} >= {"ece", "pareto_dist[usd]", "top_share"}
    for row in rows:
        assert row["low"] - 1e-9 <= row["value"] <= row["high"] + 1e-9, row
