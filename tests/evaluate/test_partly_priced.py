"""Figures of cost on a certificate are over all labelled answers, or null with what is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from routeyard.flows.cli.routers import tried
from routeyard.pipelines.evaluate.certificate import OF_COST, certify
from tests.evaluate.test_left_out import core


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
