"""Losses against loops written from their formulas, gradients against finite differences."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.zoo.run import cheapest_sufficient
from routeyard.pipelines.routers.factors import MIRT
from routeyard.pipelines.routers.neighbours import half, mean_auc, ratings, replayed, results
from routeyard.pipelines.routers.networks import (
    as_good,
    best_alpha,
    bradley_terry,
    conformal_quantile,
    distribution,
    divergence,
    grounded,
    grounded_probabilities,
    misordered,
    ordered,
    to_models,
    to_questions,
    widest,
)
from routeyard.pipelines.routers.pairs import tiers_of
from routeyard.pipelines.routers.trees import boost, grow, logits, per_tree

RNG = np.random.default_rng(3)
B, M = 6, 5
SCORES = torch.tensor(RNG.normal(size=(B, M)))
LABELS = torch.tensor((RNG.random((B, M)) < 0.5).astype(float))
KNOWN = torch.tensor((RNG.random((B, M)) < 0.8).astype(float))
#: Place of each model on all train questions, which orders equal labels.
PLACE = torch.from_numpy(np.random.default_rng(8).permutation(M)).expand(B, M)


def pairs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    first, second = torch.triu_indices(M, M, offset=1)
    sign = torch.sign(LABELS[:, first] - LABELS[:, second])
    return first, second, sign, KNOWN[:, first] * KNOWN[:, second]


def equi(scores: torch.Tensor) -> torch.Tensor:
    first, second, sign, weight = pairs()
    return misordered(scores[:, first] - scores[:, second], sign, weight, pooled=False)


def equi_loop(s: np.ndarray) -> float:
    rows = []
    for b in range(B):
        terms = []
        for i in range(M):
            for j in range(M):
                both = KNOWN[b, i] * KNOWN[b, j] > 0
                if both and LABELS[b, i] > LABELS[b, j]:
                    terms.append(math.log1p(math.exp(-(s[b, i] - s[b, j]))))
        if terms:
            rows.append(sum(terms) / len(terms))
    return sum(rows) / len(rows)


def bt(scores: torch.Tensor) -> torch.Tensor:
    first, second, sign, weight = pairs()
    each = bradley_terry(scores[:, first], scores[:, second], sign)
    return (each * weight).sum() / weight.sum()


def bt_loop(s: np.ndarray) -> float:
    total, n = 0.0, 0
    for b in range(B):
        for i in range(M):
            for j in range(i + 1, M):
                if KNOWN[b, i] * KNOWN[b, j] == 0:
                    continue
                win = 1 / (1 + math.exp(-(s[b, i] - s[b, j])))
                share = (1 + float(torch.sign(LABELS[b, i] - LABELS[b, j]))) / 2
                total -= share * math.log(win) + (1 - share) * math.log(1 - win)
                n += 1
    return total / n


def bag(scores: torch.Tensor) -> torch.Tensor:
    first, second, sign, _ = pairs()
    bad = (LABELS[:, first] + LABELS[:, second] == 0).double()
    eta = torch.tensor(0.3, dtype=torch.float64)
    return grounded(scores[:, first], scores[:, second], eta, sign, bad).mean()


def bag_loop(s: np.ndarray) -> float:
    theta, found = math.exp(0.3) + 1.000001, []
    for b in range(B):
        for i in range(M):
            for j in range(i + 1, M):
                a, c = math.exp(s[b, i]), math.exp(s[b, j])
                win, lose = a / (a + theta * c + 1), c / (c + theta * a + 1)
                bad = 1 / (1 + a + c)
                yi, yj = float(LABELS[b, i]), float(LABELS[b, j])
                p = (
                    win
                    if yi > yj
                    else lose
                    if yj > yi
                    else bad
                    if yi == 0
                    else 1 - win - lose - bad
                )
                found.append(-math.log(p))
    return sum(found) / len(found)


def spider(scores: torch.Tensor) -> torch.Tensor:
    return ordered(scores, LABELS + 0.01 * torch.arange(M), KNOWN)


def spider_loop(s: np.ndarray) -> float:
    rows = []
    for b in range(B):
        place = {m: float(LABELS[b, m]) + 0.01 * m for m in range(M) if KNOWN[b, m] > 0}
        terms = []
        for m, own in place.items():
            below = [k for k, other in place.items() if other < own]
            if below:
                total = math.exp(s[b, m]) + sum(math.exp(s[b, k]) for k in below)
                terms.append(-math.log(math.exp(s[b, m]) / total))
        if terms:
            rows.append(sum(terms) / len(terms))
    return sum(rows) / len(rows)


def contrast(scores: torch.Tensor) -> torch.Tensor:
    return to_models(scores, LABELS, KNOWN, PLACE, 2)


def contrast_loop(s: np.ndarray) -> float:
    rows = []
    for b in range(B):
        y = [float(v) for v in LABELS[b]]
        known = [bool(v > 0) for v in KNOWN[b]]
        place = PLACE[b].tolist()
        good = sorted(range(M), key=lambda m: (-(y[m] if known[m] else -1.0), place[m]))[:2]
        bad = sorted(range(M), key=lambda m: (y[m] if known[m] else 2.0, place[m]))[:2]
        bad = [m for m in bad if known[m] and y[m] <= 0.5]
        row = 0.0
        for m in good:
            if known[m] and y[m] > 0:
                total = math.exp(s[b, m]) + sum(math.exp(s[b, k]) for k in bad if k != m)
                row -= math.log(math.exp(s[b, m]) / total)
        rows.append(row)
    return sum(rows) / len(rows)


TARGET, COUNTS = distribution(LABELS.numpy(), np.array(list("aabbab")), 0.3, softmax=False)


def distil(scores: torch.Tensor) -> torch.Tensor:
    return divergence(scores, torch.tensor(TARGET), torch.tensor(COUNTS))


def distil_loop(s: np.ndarray) -> float:
    rows = []
    for b in range(B):
        if COUNTS[b]:
            total = sum(math.exp(v) for v in s[b])
            logs = [math.log(math.exp(v) / total) for v in s[b]]
            each = zip(TARGET[b], logs, strict=True)
            rows.append(sum(t * (math.log(t) - p) for t, p in each if t > 0))
    return sum(rows) / len(rows)


LOSSES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[np.ndarray], float]]] = {
    "equirouter": (equi, equi_loop),
    "bradley-terry": (bt, bt_loop),
    "p2l bag": (bag, bag_loop),
    "model spider": (spider, spider_loop),
    "routerdc": (contrast, contrast_loop),
    "zooter": (distil, distil_loop),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_gradients_equal_slow_references(name: str) -> None:
    fast, slow = LOSSES[name]
    scores = SCORES.clone().requires_grad_(True)
    loss = fast(scores)
    assert float(loss.detach()) == pytest.approx(slow(SCORES.numpy()), rel=1e-9)
    loss.backward()
    step, numeric = 1e-6, np.empty((B, M))
    for b in range(B):
        for m in range(M):
            up, down = SCORES.numpy().copy(), SCORES.numpy().copy()
            up[b, m] += step
            down[b, m] -= step
            numeric[b, m] = (slow(up) - slow(down)) / (2 * step)
    assert np.allclose(scores.grad.numpy(), numeric, atol=1e-7)
    assert np.abs(numeric).max() > 1e-3


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


def test_mirt_is_the_formula() -> None:
    router = MIRT(size=3)
    network = router.build(4, np.zeros(2, dtype=np.float32))
    x = torch.tensor(RNG.normal(size=(5, 4)).astype(np.float32))
    found = torch.sigmoid(network(x)).detach().numpy()
    wa = network.discrimination.weight.detach().numpy()
    wb = network.difficulty.weight.detach().numpy()[0]
    theta = network.ability.detach().numpy()
    for i in range(5):
        a = np.log1p(np.exp(wa @ x[i].numpy()))
        for m in range(2):
            assert found[i, m] == pytest.approx(
                1 / (1 + np.exp(-(a @ theta[m] - wb @ x[i].numpy()))), rel=1e-4
            )


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


def test_replayed_elo_is_the_textbook_update() -> None:
    labels = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = replayed(np.array([1000.0, 1000.0]), labels, np.array([[0, 1]]))[0]
    a = b = 1000.0
    for s in (0.0, 1.0):  # far to near: the second neighbour first
        e = 1 / (1 + 10 ** ((b - a) / 400))
        a, b = a + 32 * (s - e), b - 32 * (s - e)
    assert found.tolist() == pytest.approx([a, b])


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
