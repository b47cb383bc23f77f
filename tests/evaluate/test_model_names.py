"""Names of models decide nothing, and every fit of a router has a seed of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from routeyard.flows.evaluation.evaluate import makers
from routeyard.pipelines.common.arrays import draw, ranked
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import from_tables
from routeyard.pipelines.evaluate.fit import read, write
from routeyard.pipelines.evaluate.run import evaluate
from routeyard.pipelines.routers.base import Examples, Queries


def named(tables: dict[str, pa.Table], names: dict[str, str]) -> dict[str, pa.Table]:
    """The same release with other names of models."""
    found = dict(tables)
    for table in ("models", "labels", "responses"):
        old = found[table]
        at = old.schema.get_field_index("model_id")
        new = pa.array([names[one] for one in old.column("model_id").to_pylist()])
        found[table] = old.set_column(at, "model_id", new)
    return found


def test_names_of_models_change_nothing_of_an_evaluation(tables) -> None:
    plain = tables(n=300, m=5)
    old = plain["models"].column("model_id").to_pylist()
    new = dict(zip(old, ["e", "c", "a", "d", "b"], strict=True))
    renamed = named(plain, new)
    here, there = from_tables(**plain), from_tables(**renamed)
    assert there.model_ids == tuple(new[name] for name in here.model_ids)
    np.testing.assert_array_equal(here.labels, there.labels)
    left, right = (
        evaluate(core, makers(core, ["mlp", "knn-as-printed"]), resamples=50, points=10)
        for core in (here, there)
    )
    for table in ("metrics", "choices"):
        one, other = (getattr(found, table).to_pylist() for found in (left, right))
        told = [
            {
                key: new.get(value, value)
                if key == "model_id"
                else f"single:{new[value[7:]]}"
                if isinstance(value, str) and value.startswith("single:")
                else value
                for key, value in row.items()
            }
            for row in one
        ]
        assert told == other


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
