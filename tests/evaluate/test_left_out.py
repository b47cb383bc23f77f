"""What an evaluation or a certificate leaves out for want of costs or labels, it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from routeyard.flows.cli.routers import tried
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.certificate import OF_COST, certify
from routeyard.pipelines.evaluate.run import evaluate
from tests.evaluate.cores import core_of
from tests.evaluate.test_same_questions import Fixed


def core(known: np.ndarray) -> Core:
    """60 questions, 3 models; dollars where `known`, tokens everywhere."""
    rng = np.random.default_rng(0)
    made = core_of((rng.random((60, 3)) < [0.8, 0.6, 0.4]).astype(float))
    usd = np.where(known, made.costs["usd"], np.nan)
    return replace(made, costs={"usd": usd, "tokens": 1e5 * made.costs["usd"]})


def facts(one: Core) -> dict:
    return dict(evaluate(one, {"r": lambda seed: Fixed()}, resamples=5, points=5).facts)


def test_a_measure_that_many_questions_lack_is_named_with_what_is_known_of_it() -> None:
    known = np.ones((60, 3), bool)
    known[:20] = False
    known[20:26, 0] = False
    found = facts(core(known))
    assert found["measures"] == ["tokens"]
    told = found["costs_lacking"]["usd"]
    assert told["known"] == {"m0": 0.5667, "m1": 0.6667, "m2": 0.6667}
    assert "known of 114 of 180 labelled answers (63.3%)" in told["reason"]
    assert "10 of 30 test questions have no answer" in told["reason"]
    assert [words for words in found["missing"] if "no figures in usd: known of 114" in words]


def test_a_model_without_a_cost_in_one_part_is_named() -> None:
    known = np.ones((60, 3), bool)
    known[1::2, 1] = False  # train
    assert "of no train question for m1" in facts(core(known))["costs_lacking"]["usd"]["reason"]


def test_where_nothing_lacks_nothing_is_said() -> None:
    found = facts(core(np.ones((60, 3), bool)))
    assert found["costs_lacking"] == {}
    assert found["missing"] == []
    # The range that areas are over stands beside them.
    assert found["cost_range"]["usd"] == pytest.approx([1e-3, 3e-3])


def test_missing_labels_are_said_by_model() -> None:
    one = core(np.ones((60, 3), bool))
    y = one.labels.copy()
    y[:8, 0] = y[:4, 2] = np.nan
    words = facts(replace(one, labels=y, correct=y))["missing"]
    assert words[0].startswith("best single model m0: labels on 26 of 30 test questions")
    assert words[1].startswith("labels missing of 2 models: m0 has 26, accuracy 56.7% to 70.0% ")
    assert "m2 has 28, accuracy 40.0% to 46.7% whatever the others are of 30" in words[1]


def test_the_router_that_needs_something_is_named() -> None:
    class Needy(Fixed):
        def scores(self, queries):
            return queries.vectors()

    one = core(np.ones((60, 3), bool))
    with pytest.raises(BadInput, match="needs embeddings") as caught:
        evaluate(one, {"r": lambda s: Fixed(), "needy": lambda s: Needy()}, resamples=5)
    assert caught.value.where == "router 'needy'"


@pytest.mark.parametrize("unlabelled", [False, True])
def test_figures_of_cost_need_the_cost_of_every_labelled_answer(unlabelled: bool) -> None:
    known = np.ones((60, 3), bool)
    known[:20] = False
    one = core(known)
    if unlabelled:  # the answers without a cost have no label either
        y = np.where(known, one.labels, np.nan)
        one = replace(one, labels=y, correct=y)
    found = certify(one, resamples=20, routers=())
    assert found.measure == "usd"
    for name in OF_COST:
        figure = found.figures[name]
        assert (figure.value is None) != unlabelled
        if not unlabelled:
            assert "usd is known of 120 of 180 labelled answers (66.7%)" in (figure.reason or "")
    assert {model.mean_cost is None for model in found.models} == {not unlabelled}
    # Another measure that is known throughout can be asked for.
    asked = certify(one, resamples=20, routers=(), measure="tokens")
    assert asked.figures["gap_mix"].value is not None


def test_certify_says_which_reference_routers_it_tried() -> None:
    words = " ".join(tried(certify(core(np.ones((60, 3), bool)), resamples=200)))
    assert "reference routers tried: task-map; not tried: kmeans, knn, mf, mlp" in words
    assert "the questions have no embeddings" in words
    assert "corrected for 1 of 5 routers" in words
