"""What has no value says why, and says it without a warning."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from routeyard.pipelines.evaluate.metrics import METRICS
from routeyard.pipelines.evaluate.metrics.areas import aiq, aiq_as_written, perf_gain
from routeyard.pipelines.evaluate.metrics.single import BINS, ece, entropies
from routeyard.pipelines.evaluate.metrics.spec import Routed, SharedFacts
from routeyard.pipelines.evaluate.run import evaluate
from tests.evaluate.metrics.test_registry import Fixed, awkward

#: Of models that cost nothing and spend nothing.
FREE = {
    "trr": "no token is spent",
    "u_token": "no token is spent",
    "aiq[usd]": "nothing costs anything",
    "aiq_as_written[usd]": "all single models cost the same",
    "audc[usd]": "all single models cost the same, so there is no trade-off",
    "audc_budget[usd]": "all single models cost the same, so there is no trade-off",
    "nauc[usd]": "every model costs the same on every question",
    "pareto_dist[usd]": "all single models cost the same",
}


def reasons(core: Any) -> dict[str, str]:
    done = evaluate(
        core, {"a": lambda s: Fixed(0)}, all=True, resamples=5, points=3, pair=("m0", "m1")
    )
    rows = [row for row in done.metrics.to_pylist() if row["split"] == "test"]
    return {row["metric"]: row["reason"] for row in rows if row["value"] is None}


def test_models_that_cost_nothing_leave_metrics_undefined() -> None:
    core = awkward(0, 12, 4)
    free = replace(core, costs={unit: np.zeros_like(c) for unit, c in core.costs.items()})
    assert FREE.items() <= reasons(free).items()


def test_nothing_is_compared_with_models_that_are_never_right() -> None:
    core = awkward(0, 12, 4)
    wrong = replace(core, labels=core.labels * 0, correct=core.correct * 0)
    why = "the model it is compared with is never right"
    said = reasons(wrong)
    assert {name for name in said if said[name] == why} == {"v_b", "v_r"}
    assert {said[name] for name in said if name.startswith("perf_gain")} == {
        "the best single model is never right"
    }


def test_without_a_label_of_the_cheapest_model_there_is_no_mean_over_the_interval() -> None:
    drawn: dict[str, list[float]] = {"costs": [], "accuracies": [], "cheapests": []}
    shown = SimpleNamespace(low=1.0, high=3.0, cheapest=math.nan, **drawn)
    shown.cost, shown.accuracy = np.array([2.0, 3.0]), np.array([0.4, 0.8])
    found = METRICS.get("aiq_as_written").compute(shown)
    assert math.isnan(found.value)
    assert found.reason == "the cheapest single model has no label in the split"


def test_without_questions_a_mean_has_neither_value_nor_draws() -> None:
    found = Routed.mean(SimpleNamespace(), np.array([math.nan]), "nothing is known")  # type: ignore[arg-type]
    assert math.isnan(found.value)
    assert (found.replicates, found.reason) == (None, "nothing is known")


@pytest.mark.parametrize(("scores", "are"), [([0.0, 1.0], True), ([0, 1.5], False), ([-1], False)])
def test_scores_beyond_one_are_no_probabilities(scores: list[float], are: bool) -> None:
    nothing: Any = None
    shown = Routed(nothing, "mine", np.array(scores, float), nothing, SharedFacts())
    assert (shown.no_chances is None) is are
    if not are:
        assert METRICS.get("ece").compute(shown).reason == "the scores are no probabilities"


def test_what_is_divided_by_nothing_is_undefined_and_warns_nobody() -> None:
    points = np.array([0.4, 0.8])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(aiq(np.zeros(2), points, 0.0))
        assert math.isnan(aiq_as_written(np.zeros(2), points, 1.0, 1.0, 0.2))
        assert np.isnan(perf_gain(points, np.float64(0.0)))
        assert np.isnan(perf_gain(np.zeros(2), np.float64(0.0)))
        assert np.isnan(ece(np.zeros(2 * BINS)))
        assert entropies(np.array([[0.0, 2000.0]])).tolist() == [0.0]
