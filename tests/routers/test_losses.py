"""Parts of losses, rules and trees against loops and definitions."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
import torch

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.zoo.run import cheapest_sufficient
from routeyard.pipelines.routers.neighbours import half, mean_auc, ratings, results
from routeyard.pipelines.routers.networks import (
    as_good,
    best_alpha,
    bradley_terry,
    conformal_quantile,
    grounded_probabilities,
    to_questions,
    widest,
)
from routeyard.pipelines.routers.pairs import tiers_of
from routeyard.pipelines.routers.trees import boost, grow, logits, per_tree

RNG = np.random.default_rng(3)


def test_the_four_outcomes_of_a_grounded_pair_are_a_distribution() -> None:
    rng = np.random.default_rng(0)
    a, b, eta = (torch.tensor(3 * rng.normal(size=500)) for _ in range(3))
    win, lose, tie, bad = grounded_probabilities(a, b, eta)
    assert torch.allclose(win + lose + tie + bad, torch.ones(500, dtype=torch.float64))
    for p in (win, lose, tie, bad):
        assert float(p.min()) > -1e-12
    turned = grounded_probabilities(b, a, eta)
    assert torch.allclose(win, turned[1])


def test_a_question_is_drawn_to_its_cluster_and_never_to_itself() -> None:
    z = torch.nn.functional.normalize(torch.tensor(RNG.normal(size=(8, 3))), dim=1)
    cluster = torch.tensor([0, 0, 1, 1, 0, 1, 0, 1])
    values = []
    for seed in range(50):
        noise = torch.Generator().manual_seed(seed)
        values.append(float(to_questions(z, cluster, 3, noise)))
    # One positive among the three of the same cluster, negatives all of the other one but one.
    cosine = (z @ z.T).numpy()
    low = min(
        math.log(1 + sum(math.exp(cosine[i, k] - cosine[i, j]) for k in range(8) if k != i))
        for i in range(8) for j in range(8) if i != j
    )  # fmt: skip
    assert len({round(v, 9) for v in values}) > 10
    assert min(values) > 0
    assert low > 0
    alone = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7])
    assert float(to_questions(z, alone, 3, torch.Generator().manual_seed(0))) == 0.0


def test_elo_of_results_without_order_is_the_likelihoods_maximum() -> None:
    rng = np.random.default_rng(1)
    labels = (rng.random((300, 4)) < [0.2, 0.4, 0.6, 0.8]).astype(float)
    won = results(labels).sum(axis=0) + half(4)
    rating = ratings(won[None], iterations=2000)[0]
    p = 1 / (1 + 10 ** (-(rating[:, None] - rating[None, :]) / 400))
    # At the maximum every model has won as often as its strength says it should.
    games = won + won.T
    assert np.allclose((games * p).sum(axis=1), won.sum(axis=1), atol=1e-2)
    assert np.all(np.diff(rating) > 0)


def test_conformal_pieces() -> None:
    rng = np.random.default_rng(2)
    values = rng.random(99)
    inside = np.mean(values <= conformal_quantile(values, 0.1))
    assert inside == pytest.approx(90 / 99)
    p = np.where(rng.random((200, 3)) < 0.5, 0.9, 0.2)
    alpha, limit = best_alpha(1 - p, p > 0.5, 3.0)
    assert 0 < alpha < 1
    chosen = cheapest_sufficient(p, np.array([3.0, 1.0, 2.0]), 1 - limit)
    for i in range(200):
        inside_set = [m for m in (1, 2, 0) if 1 - p[i, m] <= limit]
        best = [m for m in (1, 2, 0) if p[i, m] == p[i].max()]  # of equals the cheapest
        assert chosen[i] == (inside_set or best)[0]


def test_labels_of_hybrid_llm() -> None:
    labels = np.array([[0.9, 0.4], [0.5, 0.5], [0.2, np.nan]])
    assert np.array_equal(as_good(labels, 0, "det")[:, 1], [0, 1, np.nan], equal_nan=True)
    assert widest(np.array([0.0, -0.1, -0.2, -0.3])) == pytest.approx(0.1)


def test_area_under_roc_equals_the_share_of_ordered_pairs() -> None:
    score, label = RNG.random((40, 1)).round(1), (RNG.random((40, 1)) < 0.4).astype(float)
    right, wrong = score[label == 1], score[label == 0]
    want = np.mean([(a > b) + 0.5 * (a == b) for a in right for b in wrong])
    assert mean_auc(score, label) == pytest.approx(want)


def test_tiers_are_the_best_cut() -> None:
    from itertools import combinations

    x = np.sort(RNG.normal(size=7))

    def cost(cuts: tuple[int, ...]) -> float:
        return sum(float(((p - p.mean()) ** 2).sum()) for p in np.split(x, list(cuts)))

    found = tiers_of(x, 3)
    cuts = tuple(np.flatnonzero(np.diff(found)) + 1)
    assert cost(cuts) == pytest.approx(min(cost(c) for c in combinations(range(1, 7), 2)))


def test_a_forest_of_arrays_predicts_as_scikit_learns() -> None:
    from sklearn.ensemble import RandomForestRegressor

    x, y = RNG.normal(size=(120, 5)).astype(np.float32), RNG.random((120, 3))
    arrays = grow(x, y, trees=7, depth=5, leaf=2, features=1.0, seed=1)
    forest = RandomForestRegressor(
        7, max_depth=5, min_samples_leaf=2, max_features=1.0, random_state=1
    ).fit(x, y)
    test = RNG.normal(size=(50, 5)).astype(np.float32)
    assert per_tree(arrays, test)[0] == pytest.approx(forest.predict(test), abs=1e-6)


def test_boosted_arrays_predict_as_xgboost() -> None:
    xgboost = pytest.importorskip("xgboost")
    x = RNG.normal(size=(150, 4)).astype(np.float32)
    x[:, 1] = x[:, 1].round(1)  # values that fall on thresholds
    y = (RNG.random((150, 2)) < np.where(x[:, [1]] > 0, 0.8, 0.3)).astype(float)
    y[:30, 1] = np.nan
    arrays = boost(x, y, trees=6, depth=3, rate=0.3, seed=0)
    for column in range(2):
        known = ~np.isnan(y[:, column])
        settings = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.3, "max_bin": 64,
                    "tree_method": "hist", "nthread": 1, "seed": 0,
                    "base_score": float(y[known, column].mean())}  # fmt: skip
        theirs = xgboost.train(settings, xgboost.DMatrix(x[known], y[known, column]), 6)
        want = theirs.predict(xgboost.DMatrix(x), output_margin=True)
        assert logits(arrays, x)[:, column] == pytest.approx(want, abs=1e-5)


def test_a_router_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(BadInput, match="XGBoost, which is not installed") as refused:
        boost(np.ones((4, 2), np.float32), np.eye(4), trees=1, depth=1, rate=0.1, seed=0)
    assert ".[xgboost]" in str(refused.value)


@pytest.mark.parametrize(("sign", "share"), [(1.0, 1.0), (0.0, 0.5), (-1.0, 0.0)])
def test_a_tie_is_half_a_win_to_bradley_and_terry(sign: float, share: float) -> None:
    first, second, side = (torch.tensor([v], dtype=torch.float64) for v in (0.7, -0.4, sign))
    win = 1 / (1 + math.exp(-1.1))
    wanted = -share * math.log(win) - (1 - share) * math.log(1 - win)
    assert float(bradley_terry(first, second, side)) == pytest.approx(wanted)
