"""Where labels are missing, what is compared is compared on the same questions.

The trap: a model that was asked easy questions only has the highest mean, is called the
best single model, and stands above an oracle whose mean is over all questions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.common.arrays import levels
from routeyard.pipelines.evaluate.certificate import IN_ORDER, certify
from routeyard.pipelines.evaluate.metrics.selection import best_single, task_oracle
from routeyard.pipelines.evaluate.run import evaluate
from routeyard.pipelines.evaluate.zoo.run import references
from tests.evaluate.cores import core_of


def easy_only(n: int = 40) -> np.ndarray:
    """m0 is right on six of ten; m1 was asked the first four questions, which everybody gets."""
    y = np.full((n, 3), np.nan)
    y[:, 0] = [float(i % 10 < 6) for i in range(n)]
    y[:, 2] = [float(i % 10 < 4) for i in range(n)]
    y[:4, 1] = 1.0
    return y


class Fixed:
    def fit(self, train) -> None:
        self.m = len(train.model_ids)

    def scores(self, queries):
        return np.random.default_rng(3).random((len(queries), self.m))


def of(done, metric: str) -> dict[str, float]:
    rows = done.metrics.to_pylist()
    return {row["router"]: row["value"] for row in rows if row["metric"] == metric}


def test_who_was_asked_easy_questions_is_not_the_best_single_model() -> None:
    y = easy_only()
    assert np.nanmean(y[:, 1]) == 1.0
    assert best_single(y) == 0
    assert levels(y)[0] == np.mean(y[:, 0])


def test_the_oracle_of_a_certificate_is_not_below_the_best_single_model() -> None:
    found = certify(core_of(easy_only()), resamples=50, routers=())
    value = {name: figure.value for name, figure in found.figures.items()}
    assert found.best_single == "m0"
    assert value["best_single"] <= value["query_oracle"]
    assert value["gap_query_oracle"] == pytest.approx(value["query_oracle"] - value["best_single"])


def test_a_certificate_says_on_how_many_questions_it_compares() -> None:
    y = easy_only()
    y[5:9, 0] = np.nan
    found = certify(core_of(y), resamples=50, routers=())
    assert (found.n_compared, found.n_queries) == (36, 40)
    assert "36 of 40 questions" in found.words


@st.composite
def holes(draw):
    n, m = draw(st.integers(6, 24)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    y = rng.choice([0.0, 0.3, 1.0, 1.0], (n, m))
    y[rng.random((n, m)) < draw(st.floats(0, 0.7))] = np.nan
    # Every model and question has a label on either side of the split.
    y[:2] = rng.choice([0.0, 1.0], (2, m))
    y[np.arange(n), rng.integers(0, m, n)] = 1.0
    return y


@given(holes())
@settings(deadline=None, max_examples=25)
def test_figures_of_a_certificate_never_contradict(y) -> None:
    value = {
        name: one.value
        for name, one in certify(core_of(y), resamples=5, routers=()).figures.items()
    }
    for lower, upper in IN_ORDER:
        assert value[lower] <= value[upper] + 1e-9, (lower, upper)
    for gap, upper, lower in (
        ("gap_query_oracle", "query_oracle", "best_single"),
        ("gap_task_oracle", "task_oracle", "best_single"),
        ("gap_mix", "query_oracle", "cost_matched_mix"),
    ):
        assert value[gap] == pytest.approx(value[upper] - value[lower], abs=1e-9)


@given(holes())
@settings(deadline=None, max_examples=12)
def test_rows_of_an_evaluation_never_contradict(y) -> None:
    done = evaluate(core_of(y), {"r": lambda seed: Fixed()}, all=True, resamples=5, points=5)
    accuracy = of(done, "accuracy")
    routers = [name for name in accuracy if not name.startswith(("single:", "best single"))]
    assert max(accuracy[name] for name in routers) <= accuracy["oracle"] + 1e-9
    assert done.facts["task_oracle_accuracy"] == pytest.approx(accuracy["task oracle"])
    mix = [row["y"] for row in done.curves.to_pylist() if row["router"] == "random mix"]
    assert max(mix) <= accuracy["oracle"] + 1e-9
    # A single model is itself: the mean over the questions it has a label for, and their number.
    test = y[[i for i in range(len(y)) if not i % 2 and not np.isnan(y[i]).all()]]
    rows = {r["router"]: r for r in done.metrics.to_pylist() if r["metric"] == "accuracy"}
    for k in range(y.shape[1]):
        own = test[~np.isnan(test[:, k]), k]
        row = rows[f"single:m{k}"]
        assert row["n"] == (len(own) or None) == (done.facts["labelled"][f"m{k}"] or None)
        assert row["value"] == (pytest.approx(own.mean()) if len(own) else None)
        # On its own questions it is not above the oracle.
        if len(own):
            assert own.mean() <= np.nanmax(test[~np.isnan(test[:, k])], axis=1).mean() + 1e-9
    # What a router gains is the difference on the questions of both, and so is the comparison.
    best = test[:, int(done.facts["best_single"][1:])]
    met = ~np.isnan(best)
    scores = {r["query_id"]: r["score"] for r in done.choices.to_pylist() if r["router"] == "r"}
    mine = np.array([scores[q] for q in sorted(scores)])
    gain = next(
        r for r in done.metrics.to_pylist()
        if r["router"] == "r" and r["metric"] == "gain_over_best_single"
    )  # fmt: skip
    assert gain["n"] == (met.sum() or None)
    assert done.facts["n_compared"] == met.sum()
    if met.any():
        assert gain["value"] == pytest.approx((mine - best)[met].mean(), abs=1e-9)
        [pair] = [r for r in done.comparisons.to_pylist() if r["metric"] == "accuracy"]
        assert -pair["difference"] == pytest.approx(gain["value"], abs=1e-9)


class Constant(Fixed):
    """Always asks one model first, then the others in their order."""

    def __init__(self, first: int):
        self.first = first

    def scores(self, queries):
        row = np.linspace(0.5, 0.1, self.m)
        row[self.first] = 1.0
        return np.tile(row, (len(queries), 1))


def test_what_asks_the_best_single_model_costs_as_much_as_it() -> None:
    # m0 is the cheapest and the best; some of its answers have no label, and there the next
    # cheapest stands in along the curve and the dear m2 would for "always m0".
    rng = np.random.default_rng(1)
    y = (rng.random((120, 3)) < [0.9, 0.4, 0.7]).astype(float)
    y[20:28, 0] = np.nan
    done = evaluate(core_of(y), {"r": lambda seed: Constant(0)}, all=True, resamples=20, points=9)
    assert done.facts["best_on_test"] == "m0"
    for name in ("qnc[usd]", "v_b"):
        assert {r: v for r, v in of(done, name).items() if r == "r"} == {"r": pytest.approx(1.0)}
    for name in ("cost_save[usd]", "perf_gain[usd]", "gain_b", "gain_over_best_single"):
        assert of(done, name)["r"] == pytest.approx(0.0, abs=1e-12), name
    assert of(done, "mean_cost[usd]")["single:m0"] == pytest.approx(1e-3)
    n = {(r["router"], r["metric"]): r["n"] for r in done.metrics.to_pylist()}
    assert n["r", "qnc[usd]"] == n["single:m0", "mean_cost[usd]"] == 56
    assert n["r", "accuracy"] == 60


@given(holes())
@settings(deadline=None, max_examples=25)
def test_references_of_the_zoo_never_contradict(y) -> None:
    found = references(core_of(y), "dense")
    assert found["best single model (train)"] <= found["task oracle"] + 1e-9
    assert max(found.values()) <= found["oracle"] + 1e-9


def test_the_oracle_by_task_takes_the_next_best_where_the_best_is_missing() -> None:
    y = np.array([[1, 0], [1, 0], [np.nan, 1], [0, 1]], float)
    assert task_oracle(y, np.array(["a"] * 3 + ["b"])).tolist() == [0, 0, 1, 1]


def test_without_holes_nothing_changes() -> None:
    y = np.random.default_rng(0).integers(0, 2, (30, 4)).astype(float)
    assert levels(y).tolist() == y.mean(axis=0).tolist()
    core = core_of(y)
    found = certify(core, resamples=20, routers=())
    assert found.n_compared == found.n_queries == 30
    assert "questions on which that model" not in found.words
    assert certify(replace(core), resamples=20, routers=()).to_json() == found.to_json()
