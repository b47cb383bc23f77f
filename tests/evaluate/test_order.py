"""Every metric of an evaluation is the same whatever the order of models and of questions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np
import pytest

from routeyard.pipelines.common.matrix import PER_QUERY, Core, rows_of
from routeyard.pipelines.evaluate.metrics import METRICS
from routeyard.pipelines.evaluate.run import evaluate
from tests.evaluate.metrics.test_registry import awkward

SLOW = pytest.mark.slow
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

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self.first = names or {}

    def fit(self, train) -> None:
        self.models = train.model_ids

    def scores(self, queries):
        def drawn(*of: str) -> float:
            called = " ".join(self.first.get(one, one) for one in of)
            return hashlib.sha256(called.encode()).digest()[0] % 5 / 4

        return np.array([[drawn(q, m) for m in self.models] for q in queries.query_ids])


def permuted(core: Core, rows: np.ndarray, columns: np.ndarray) -> Core:
    """The same release with questions and models in another order."""
    turned = core.with_models(tuple(core.model_ids[k] for k in columns))
    own = {
        f.name: rows_of(getattr(turned, f.name), rows) for f in fields(Core) if f.name in PER_QUERY
    }
    return replace(turned, **own, correct=turned.decided[rows])


def figures(
    core: Core, first: Mapping[str, str] | None = None
) -> dict[tuple[str, str], float | None]:
    """(router, metric) → value; `first`: what models and questions were called before."""
    first = first or {}
    now = {old: new for new, old in first.items()}
    done = evaluate(
        core, {"shown": lambda seed: Shown(first)}, all=True, resamples=20, points=9,
        pair=(now.get("m0", "m0"), now.get("m2", "m2")), splits=2,
    )  # fmt: skip
    rows = done.metrics.to_pylist()
    swept = [row for row in done.curves.to_pylist() if row["router"] == "shown"]

    def called(name: str) -> str:
        kind, colon, model = name.rpartition(":")
        return f"{kind}{colon}{first.get(model, model)}"

    found = {(called(r["router"]), r["metric"]): r["value"] for r in rows}
    for at, row in enumerate(swept):
        for axis in ("x", "y"):
            found["shown", f"{axis} of {row['curve']} {row['measure']} {at}"] = row[axis]
    return found


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=SLOW) for k in range(2, 6))])
def test_order_of_models_and_questions_changes_no_metric(seed: int) -> None:
    core = awkward(seed, 24, 5)
    if seed % 2:  # sizes: models of equal cost
        core = replace(core, costs={"params": np.tile([7.0, 7.0, 13.0, 13.0, 7.0], (30, 1))})
    # The last test questions have the words of the train questions, which are the first six.
    core = replace(core, prompts=tuple(f"What is {i % 26}?" for i in range(30)))
    rng = np.random.default_rng(seed)
    plain = figures(core)
    if not seed:
        assert {name.partition("[")[0] for _, name in plain} >= set(METRICS.builtin) - ABSENT
    for rows, columns in (
        (np.arange(30), rng.permutation(5)),
        (rng.permutation(30), np.arange(5)),
        (rng.permutation(30), rng.permutation(5)),
    ):
        equal(plain, figures(permuted(core, rows, columns)))


def equal(plain: dict, other: dict) -> None:
    assert plain.keys() == other.keys()
    for key, value in plain.items():
        same = value == other[key] or math.isclose(value, other[key], abs_tol=1e-12)
        assert same, (key, value, other[key])


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=SLOW) for k in (1, 2))])
def test_names_of_models_and_questions_change_no_metric(seed: int) -> None:
    """Names that sort the other way: the same values, under the other names."""
    core = awkward(seed, 24, 5)
    core = replace(core, prompts=tuple(f"What is {i % 26}?" for i in range(30)))
    models, asked = (tuple(f"z{99 - k}" for k in range(n)) for n in (5, 30))
    asked = tuple(f"q{one}" for one in asked)
    first = dict(zip((*models, *asked), (*core.model_ids, *core.query_ids), strict=True))
    plain, other = figures(core), figures(replace(core, model_ids=models, query_ids=asked), first)
    for found in (plain, other):  # repeated splits are drawn by the questions' ids
        for key in [key for key in found if "_split_" in key[1]]:
            del found[key]
    equal(plain, other)
