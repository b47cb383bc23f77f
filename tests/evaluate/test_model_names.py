"""Equal models are ranked by their answers, and every fit of a router has a seed of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from routeyard.flows.evaluation.evaluate import makers
from routeyard.pipelines.common.arrays import draw, ranked
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.fit import read, write
from routeyard.pipelines.evaluate.run import evaluate
from routeyard.pipelines.routers.base import Examples, Queries


def test_equal_models_are_ranked_by_what_they_answer() -> None:
    rng = np.random.default_rng(0)
    y = np.stack([rng.permutation([1.0, 1.0, 0.0, 0.0, np.nan, 1.0]) for _ in range(6)], axis=1)
    first = ranked(y)
    for _ in range(10):
        rows, columns = rng.permutation(len(y)), rng.permutation(6)
        again = y[rows][:, columns]
        np.testing.assert_array_equal(draw(again), draw(y)[columns])
        np.testing.assert_array_equal(again[:, ranked(again)], y[rows][:, first])


class Lucky:
    """A stochastic router with a default seed."""

    def __init__(self, seed: int = 3) -> None:
        self.seed = seed

    def fit(self, train: Examples) -> None:
        self.m = len(train.model_ids)

    def scores(self, queries: Queries) -> np.ndarray:
        return np.random.default_rng(self.seed).random((len(queries), self.m))


def test_every_fit_of_a_class_of_ones_own_has_a_seed_of_its_own(core) -> None:
    found = evaluate(core, makers(core, {"mine": Lucky}), resamples=50, points=10, seeds=5)
    spread = {r["metric"]: r["value"] for r in found.metrics.to_pylist() if r["router"] == "mine"}
    assert spread["accuracy_seed_sd"] > 0
    with pytest.raises(BadInput, match="one router with one seed"):
        evaluate(core, makers(core, {"mine": Lucky()}), resamples=50, points=10, seeds=5)


def test_cells_keep_which_graded_answers_are_right(core, tmp_path) -> None:
    graded = replace(core, labels=core.labels * 0.6 + 0.2, correct=core.labels)
    inputs = write(tmp_path, graded, "dense", {})
    back = read(inputs.folder, inputs.data, "")
    np.testing.assert_array_equal(back.decided, core.labels)
    plain = write(tmp_path, replace(core, correct=core.labels.copy()), "dense", {})
    assert plain.data == write(tmp_path, core, "dense", {}).data != inputs.data
