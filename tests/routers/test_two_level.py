"""The two-level router: a model, then an arm of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Regression

from routeyard.pipelines.common.matrix import Arms
from routeyard.pipelines.routers import ROUTERS, Examples, Queries

MODELS = np.array([0.0, 0, 0, 3, 3, 3])  # codes need not follow each other
NONE = np.full(6, np.nan)


def planted(n: int, seed: int) -> Examples:
    """Two models, each the better one for half of the questions; effort helps hard ones alone."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 6))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chance = np.empty((n, 6))
    for k in range(6):
        side = vectors[:, 0] if k < 3 else -vectors[:, 0]
        chance[:, k] = 0.5 + 0.5 * side + 0.25 * (k % 3 - 1) * np.sign(vectors[:, 1])
    labels = (rng.random((n, 6)) < np.clip(chance, 0, 1)).astype(float)
    queries = Queries(
        tuple(f"q{i:04}" for i in range(n)), np.array(["t"] * n), vectors.astype(np.float32)
    )
    names = tuple(f"{m}-{e}" for m in "ab" for e in ("low", "mid", "high"))
    return Examples(queries, names, labels, arms=Arms(MODELS, NONE, NONE, NONE))


def test_scores_are_those_of_two_regressions_by_a_loop() -> None:
    train, test = planted(300, 0), planted(80, 1).queries
    found = ROUTERS.get("two-level")(alpha=3.0, alpha_arm=40.0).fit(train).scores(test)
    x, asked = train.queries.vectors().astype(float), test.vectors().astype(float)
    for first in (0, 3):
        model = train.labels[:, first : first + 3].mean(axis=1)
        level = Regression(alpha=3.0).fit(x, model).predict(asked)
        for k in range(first, first + 3):
            step = Regression(alpha=40.0).fit(x, train.labels[:, k] - model).predict(asked)
            assert found[:, k] == pytest.approx(np.clip(level + step, 0, 1), abs=1e-6)


def test_it_finds_the_model_and_then_the_effort() -> None:
    train, test = planted(1_500, 0), planted(500, 1)
    chosen = ROUTERS.get("two-level")().fit(train).scores(test.queries).argmax(axis=1)
    x = test.queries.vectors()
    clear = (abs(x[:, 0]) > 0.2) & (abs(x[:, 1]) > 0.2)
    wanted = np.where(x[:, 0] > 0, 0, 3) + np.where(x[:, 1] > 0, 2, 0)
    assert (chosen == wanted)[clear].mean() > 0.9


def test_without_arms_it_is_ridge() -> None:
    train = dataclasses.replace(planted(200, 0), arms=None)
    asked = planted(50, 1).queries
    alone = ROUTERS.get("two-level")(alpha=10.0).fit(train).scores(asked)
    assert alone == pytest.approx(ROUTERS.get("ridge")(alpha=10.0).fit(train).scores(asked))


def test_arms_that_were_asked_other_questions_are_not_taken_for_worse() -> None:
    # The first arm is asked the easy half alone, and answers as its sister does.
    train = planted(400, 0)
    easy = np.arange(400) % 2 == 0
    labels = np.repeat(easy[:, None].astype(float) * 0.5 + 0.25, 6, axis=1)
    labels[~easy, 0] = np.nan
    found = ROUTERS.get("two-level")(alpha=1e6, alpha_arm=1e6).fit(
        dataclasses.replace(train, labels=labels)
    )
    scores = found.scores(train.queries)
    assert np.ptp(scores[:, 1:], axis=1).max() < 0.15
