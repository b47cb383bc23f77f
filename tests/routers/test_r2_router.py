"""R2-Router's arms: a model and an output budget, chosen as a plain loop over both chooses them."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge as Regression

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Arms, from_tables
from routeyard.pipelines.common.pool import models_table
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.base import no_chances, traits_of, unlike_published
from routeyard.schemas import LABELS, QUERIES
from routeyard.schemas.recipe.pool import Pool

BUDGETS = (50, 400, None)
#: Model → USD per 10⁶ tokens in and out.
PRICES = {"small": (50.0, 200.0), "large": (1000.0, 4000.0)}
ARMS = list(product(PRICES, BUDGETS))


def planted(n: int, seed: int) -> Examples:
    """Questions of two kinds: one needs long answers of the large model, one any answer."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    vectors = np.zeros((n, 8), np.float32)
    vectors[np.arange(n), kind] = 1.0
    vectors += 0.1 * rng.normal(size=vectors.shape).astype(np.float32)
    chance = np.array([[0.9] * 6, [0.1, 0.2, 0.3, 0.2, 0.7, 0.9]])[kind]
    labels = (rng.random((n, 6)) < chance).astype(float)
    labels[rng.random((n, 6)) < 0.1] = np.nan
    words = rng.integers(5, 40, n)
    texts = tuple(" ".join(["word"] * k) for k in words)
    said = np.where(kind[:, None] == 1, 900, 120) + rng.integers(0, 50, (n, 6))
    spent = np.minimum(said, [budget or 10**6 for _, budget in ARMS])
    usd = np.array(
        [
            [(1.3 * words[i] * PRICES[m][0] + spent[i, k] * PRICES[m][1]) / 1e6
             for k, (m, _) in enumerate(ARMS)]
            for i in range(n)
        ]
    )  # fmt: skip
    arms = Arms(
        np.array([0.0, 0, 0, 3, 3, 3]),
        np.array([np.nan if budget is None else budget for _, budget in ARMS]),
        np.array([PRICES[m][0] / 1e6 for m, _ in ARMS]),
        np.array([PRICES[m][1] / 1e6 for m, _ in ARMS]),
    )
    queries = Queries(
        tuple(f"q{i}" for i in range(n)), np.array([f"t{k}" for k in kind]), vectors,
        questions=texts,
    )  # fmt: skip
    names = tuple(f"{m}@{budget}" for m, budget in ARMS)
    return Examples(queries, names, labels, {"usd": usd}, arms=arms)


def chosen_by_loops(
    train: Examples, test: Queries, weight: float
) -> tuple[list[str], list[list[float]]]:
    """Each model at its best budget, then the best model, with scikit-learn's regressions.

    Also the value of every arm.
    """
    x, asked = train.queries.vectors().astype(float), test.vectors().astype(float)

    def regressed(values: np.ndarray) -> np.ndarray:
        known = ~np.isnan(values)
        return np.asarray(Regression(alpha=10.0).fit(x[known], values[known]).predict(asked))

    quality = {arm: np.clip(regressed(train.labels[:, k]), 0, 1) for k, arm in enumerate(ARMS)}
    paid = {arm: regressed(train.costs["usd"][:, k]) for k, arm in enumerate(ARMS)}
    found, values = [], []
    for i, text in enumerate(test.questions):
        tokens = max(1, int(len(text.split()) * 1.3))
        best: dict[str, tuple[float, int | None]] = {}
        values.append([])
        for model, (price_in, price_out) in PRICES.items():
            for budget in BUDGETS:
                cost = max(0.0, paid[model, budget][i])
                if budget is not None:
                    cost = tokens * price_in / 1e6 + budget * price_out / 1e6
                value = (1 - weight) * quality[model, budget][i] - weight * cost
                values[-1].append(value)
                if model not in best or value > best[model][0]:
                    best[model] = (value, budget)
        model = max(best, key=lambda name: best[name][0])
        found.append(f"{model}@{best[model][1]}")
    return found, values


@pytest.mark.parametrize("weight", [0.0, 0.2, 0.5, 0.8])
def test_arms_are_chosen_as_by_a_loop_over_models_and_budgets(weight: float) -> None:
    train, test = planted(400, 0), planted(150, 1).queries
    router = ROUTERS.get("r2-router")(weight=weight)
    router.fit(train)
    scores = router.scores(test)
    chosen = [train.model_ids[k] for k in scores.argmax(axis=1)]
    wanted, values = chosen_by_loops(train, test, weight)
    assert chosen == wanted
    assert scores == pytest.approx(np.array(values), abs=1e-6)
    assert len(set(chosen)) > 1  # both kinds are told apart, so that the comparison can fail
    assert (traits_of(router).scale == "probability") == (weight == 0)
    assert weight or no_chances(scores) is None


def test_the_published_preset_weighs_quality_and_dollars_equally() -> None:
    router = ROUTERS.get("r2-router")(preset="code")
    router.fit(planted(100, 0))
    assert (router.alpha, router.weight) == (10.0, 0.5)
    assert "Qwen3-0.6B" in " ".join(unlike_published(router))


def test_without_arms_or_prices_it_refuses() -> None:
    train = planted(60, 0)
    with pytest.raises(BadInput, match="no model with several budgets"):
        ROUTERS.get("r2-router")().fit(dataclasses.replace(train, arms=None))
    unpriced = dataclasses.replace(train, costs={})
    with pytest.raises(BadInput, match="nothing says what 'small@None' costs"):
        ROUTERS.get("r2-router")(weight=0.5).fit(unpriced)
    ROUTERS.get("r2-router")().fit(unpriced)  # qualities need no costs


def test_the_arms_of_a_pool_reach_the_router() -> None:
    models = [
        {"model_id": "a-50", "endpoint_model": "a", "parameters": {"max_tokens": 50}},
        {"model_id": "a", "price_in": 1, "price_out": 2, "price_date": "2026-11-01"},
        {"model_id": "b", "parameters": {"max_completion_tokens": 70}},
    ]
    table = models_table(Pool.model_validate({"models": models}))
    assert table.column("base_model").to_pylist() == ["a", "a", None]
    assert table.column("output_budget").to_pylist() == [None, 50, 70]
    asked = QUERIES.from_rows(
        [
            {"query_id": f"q{'0' * 20}", "source": "s", "source_id": "0", "task": "t",
             "domain": "d", "question": "?", "prompt": "?", "choices": [], "references": ["x"],
             "scorer": "em", "metadata": "{}"}
        ]
    )  # fmt: skip
    labels = LABELS.empty()
    core = from_tables(asked, table, labels)
    assert core.arms is not None
    at = [core.model_ids.index(name) for name in ("a", "a-50", "b")]
    arms = core.arms.take(np.array(at))
    assert arms.model[0] == arms.model[1] != arms.model[2]
    assert arms.budget == pytest.approx([np.nan, 50, 70], nan_ok=True)
    assert arms.price_out == pytest.approx([2e-6, np.nan, np.nan], nan_ok=True)
    # A release from before has no such columns, and no arms.
    older = table.drop_columns(["base_model", "output_budget"])
    assert from_tables(asked, older, labels).arms is None
    assert isinstance(older, pa.Table)
