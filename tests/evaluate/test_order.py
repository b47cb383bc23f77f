"""Every metric of an evaluation is the same whatever the order of models and of questions."""

from __future__ import annotations

import hashlib
import math
from dataclasses import fields, replace

import numpy as np
import pytest

from routeyard.pipelines.evaluate.run import evaluate
from routeyard.pipelines.matrix.core import PER_QUERY, Core
from routeyard.pipelines.matrix.examples import rows_of
from routeyard.pipelines.metrics import METRICS
from routeyard.pipelines.routers import ROUTERS
from tests.evaluate.metrics.test_registry import awkward

#: Metrics that compare routers with each other or need what the release here has not.
ABSENT = {
    "accuracy_order_high", "accuracy_order_low",  # of routers that take equals by position
    "answer_quality",  # a judge's picks
    "decision_cost", "decision_time",  # a clock
    "accuracy_change", "agreement", "id_accuracy", "ood_accuracy",  # groups left out
    "accuracy_seed_mean", "accuracy_seed_sd",
    "accuracy_ceiling", "accuracy_floor",  # undecided labels that the choice needs
}  # fmt: skip


class Shown:
    """Scores of few values, drawn by what question and model are called."""

    name = "shown"

    def fit(self, train) -> None:
        self.models = train.model_ids

    def scores(self, queries):
        def drawn(*of: str) -> float:
            return hashlib.sha256(" ".join(of).encode()).digest()[0] % 5 / 4

        return np.array([[drawn(q, m) for m in self.models] for q in queries.query_ids])


def permuted(core: Core, rows: np.ndarray, columns: np.ndarray) -> Core:
    """The same release with questions and models in another order."""
    turned = core.with_models(tuple(core.model_ids[k] for k in columns))
    own = {
        f.name: rows_of(getattr(turned, f.name), rows) for f in fields(Core) if f.name in PER_QUERY
    }
    return replace(turned, **own, correct=turned.decided[rows])


def figures(core: Core) -> dict[tuple[str, str], float | None]:
    done = evaluate(
        core, {"shown": lambda seed: Shown()}, resamples=20, points=9, pair=("m0", "m2"), splits=2
    )
    return {(r["router"], r["metric"]): r["value"] for r in done.metrics.to_pylist()}


@pytest.mark.parametrize("seed", range(6))
def test_order_of_models_and_questions_changes_no_metric(seed: int) -> None:
    core = awkward(seed, 24, 5)
    # The last test questions have the words of the train questions, which are the first six.
    core = replace(core, prompts=tuple(f"What is {i % 26}?" for i in range(30)))
    rng = np.random.default_rng(seed)
    plain = figures(core)
    if not seed:
        here = {name.partition("[")[0] for router, name in plain if router == "shown"}
        assert here | {n.partition("[")[0] for r, n in plain} >= set(METRICS.builtin) - ABSENT
    for rows, columns in (
        (np.arange(30), rng.permutation(5)),
        (rng.permutation(30), np.arange(5)),
        (rng.permutation(30), rng.permutation(5)),
    ):
        other = figures(permuted(core, rows, columns))
        assert plain.keys() == other.keys()
        for key, value in plain.items():
            same = value == other[key] or math.isclose(value, other[key], abs_tol=1e-12)
            assert same, (key, value, other[key])


def test_a_choice_by_position_gives_the_range_over_orders(core: Core) -> None:
    def found(ties: str) -> dict[str, float]:
        def made(seed: int) -> object:
            return ROUTERS.get("routerdc")(seed=seed, epochs=3, ties=ties)

        done = evaluate(core, {"dc": made}, resamples=20, points=5)
        rows = done.metrics.to_pylist()
        return {row["metric"]: row["value"] for row in rows if row["router"] == "dc"}

    taken = found("position")
    low, high = taken["accuracy_order_low"], taken["accuracy_order_high"]
    assert 0 < low <= taken["accuracy"] <= high <= 1
    assert not {"accuracy_order_low", "accuracy_order_high"} & set(found("means"))
