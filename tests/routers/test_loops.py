"""Routers beside loops over their formulas: one question, one neighbour, one model at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from routeyard.pipelines.common.arrays import shuffled
from routeyard.pipelines.routers import PAIR_ROUTERS, ROUTERS, Queries
from routeyard.pipelines.routers.neighbours import settled
from routeyard.pipelines.routers.pairs import Battles
from tests.routers.test_published import HELD, MODELS, TEST, TRAIN

ORDERED = settled(TRAIN)
X, Y = ORDERED.queries.vectors().astype(np.float64), ORDERED.labels
PRIOR = [float(np.nanmean(column)) for column in Y.T]


def neighbours(asked: np.ndarray, k: int, known: np.ndarray = X) -> list[int]:
    """The k most similar questions, the first of equals."""
    return sorted(range(len(known)), key=lambda i: (-float(asked @ known[i]), i))[:k]


def mean_of(rows: list[int], model: int, weight: float) -> float:
    """Mean label of a model over rows, its overall mean counted `weight` times more."""
    found = [float(Y[i, model]) for i in rows if not math.isnan(Y[i, model])]
    total = len(found) + weight
    return (sum(found) + weight * PRIOR[model]) / total if total else PRIOR[model]


@pytest.mark.parametrize(("name", "weight"), [("knn", 1.0), ("knn-as-printed", 0.0)])
def test_knn_is_the_mean_label_of_the_nearest(name: str, weight: float) -> None:
    k = 10
    router = ROUTERS.get(name)(**({"choices": (k,)} if weight else {"k": k}))
    found = router.fit(TRAIN).scores(TEST.queries)
    for asked, ours in zip(TEST.queries.vectors()[:40].astype(np.float64), found, strict=False):
        near = neighbours(asked, k)
        wanted = [mean_of(near, m, weight) for m in range(MODELS)]
        assert ours == pytest.approx(wanted, abs=1e-12)


def test_carrot_is_the_mean_score_of_the_nearest() -> None:
    router = ROUTERS.get("carrot")(choices=(8,)).fit(TRAIN)
    found = router.scores(TEST.queries)
    for row, asked in enumerate(TEST.queries.vectors()[:40].astype(np.float64)):
        near = neighbours(asked, 8)
        for m in range(MODELS):
            assert found[row, m] == pytest.approx(mean_of(near, m, 1.0), abs=1e-12)


@pytest.mark.parametrize(("name", "weight"), [("kmeans", 1.0), ("kmeans-as-printed", 0.0)])
def test_kmeans_is_the_mean_label_of_the_nearest_cluster(name: str, weight: float) -> None:
    router = ROUTERS.get(name)(choices=(6,)).fit(TRAIN)
    centres = router._centres.astype(np.float64)

    def cluster(v: np.ndarray) -> int:
        return min(range(6), key=lambda c: float(((v - centres[c]) ** 2).sum()))

    member = [cluster(x) for x in X]
    found = router.scores(TEST.queries)
    for row, asked in enumerate(TEST.queries.vectors()[:40].astype(np.float64)):
        own = [i for i, c in enumerate(member) if c == cluster(asked)]
        wanted = [mean_of(own, m, weight) for m in range(MODELS)]
        assert found[row] == pytest.approx(wanted, abs=1e-9)


def test_eagle_as_published_replays_its_neighbours() -> None:
    """K = 32, 20 neighbours from far to near, half of the global rating and half of the local."""
    router = ROUTERS.get("eagle")(preset="text").fit(TRAIN)
    found, k, share = router.scores(TEST.queries), router.neighbours, router.share
    for row, asked in enumerate(TEST.queries.vectors()[:15].astype(np.float64)):
        rating = [float(value) for value in router._global]
        for i in neighbours(asked, k)[::-1]:
            for a in range(MODELS):
                for b in range(a + 1, MODELS):
                    first, second = float(Y[i, a]), float(Y[i, b])
                    if math.isnan(first) or math.isnan(second):
                        continue
                    score = 0.5 if first == second else float(first > second)
                    expected = 1 / (1 + 10 ** ((rating[b] - rating[a]) / 400))
                    rating[a] += 32 * (score - expected)
                    rating[b] -= 32 * (score - expected)
        for m in range(MODELS):
            wanted = share * float(router._global[m]) + (1 - share) * rating[m]
            assert found[row, m] == pytest.approx(wanted, abs=1e-8)


def test_linucb_is_ridge_regression_on_what_it_chose() -> None:
    """A = I + Σ x xᵀ and b = Σ r x solved anew at every step, in place of a kept inverse."""
    router = ROUTERS.get("linucb")(alpha=0.5, size=None, seed=3).fit(TRAIN)
    x = TRAIN.queries.vectors().astype(np.float64)
    centre = x.mean(axis=0)

    def features(v: np.ndarray) -> np.ndarray:
        return np.append((v - centre) * math.sqrt(10), 1.0)

    d = x.shape[1] + 1
    a, b = [np.eye(d) for _ in range(MODELS)], [np.zeros(d) for _ in range(MODELS)]
    order = shuffled(TRAIN.labels, 3).tolist()
    for row in np.random.default_rng(3).permutation(len(x)).tolist():
        now = features(x[row])
        bound = {}
        for m in order:
            if not math.isnan(TRAIN.labels[row, m]):
                solved = np.linalg.solve(a[m], np.column_stack([b[m], now]))
                bound[m] = solved[:, 0] @ now + 0.5 * math.sqrt(now @ solved[:, 1])
        arm = max(bound, key=lambda m, bound=bound: round(bound[m], 12))
        a[arm] += np.outer(now, now)
        b[arm] += TRAIN.labels[row, arm] * now
    found = router.scores(TEST.queries)
    for row, asked in enumerate(TEST.queries.vectors().astype(np.float64)):
        for m in range(MODELS):
            wanted = np.linalg.solve(a[m], b[m]) @ features(asked)
            assert found[row, m] == pytest.approx(wanted, abs=1e-9)


BATTLES = Battles(
    HELD.queries.vectors(), ("large", "small"),
    np.zeros(len(HELD.queries), dtype=np.int64), np.ones(len(HELD.queries), dtype=np.int64),
    np.random.default_rng(5).choice([0.0, 0.5, 1.0], len(HELD.queries)),
)  # fmt: skip
ASKED: Queries = TEST.queries


def test_similarity_weighted_ranking_is_the_weighted_share_of_wins() -> None:
    """Of two models Bradley-Terry has a closed form: wins over games."""
    found = PAIR_ROUTERS.get("pair-bt-as-printed")().fit(BATTLES, "small", "large").scores(ASKED)
    past = BATTLES.vectors.astype(np.float64)
    for row, asked in enumerate(ASKED.vectors().astype(np.float64)):
        won = lost = 0.0
        for vector, outcome in zip(past, BATTLES.outcome.tolist(), strict=True):
            weight = 10 ** (1 + float(asked @ vector))
            won += weight * outcome
            lost += weight * (1 - outcome)
        assert found[row] == pytest.approx(won / (won + lost), abs=1e-6)


def test_pair_knn_is_the_nearest_battle() -> None:
    found = PAIR_ROUTERS.get("pair-knn-as-printed")().fit(BATTLES, "small", "large").scores(ASKED)
    past = BATTLES.vectors.astype(np.float64)
    for row, asked in enumerate(ASKED.vectors().astype(np.float64)):
        nearest = neighbours(asked, 1, past)[0]
        assert found[row] == pytest.approx(float(BATTLES.outcome[nearest]))


def test_pair_mf_and_mlp_score_as_their_equations() -> None:
    """Equation 9: σ(s(a, q) − s(b, q)), s(m, q) = v_mᵀ·W·q; equation 10: a softmax over two."""
    x = ASKED.vectors().astype(np.float64)
    bilinear = PAIR_ROUTERS.get("pair-mf-as-printed")(size=4, epochs=2)
    found = bilinear.fit(BATTLES, "small", "large").scores(ASKED)
    named = {k: v.detach().numpy() for k, v in bilinear._network.state_dict().items()}
    v, w = named["models"].astype(np.float64), named["project.weight"].astype(np.float64)
    for row, asked in enumerate(x):
        large, small = (float(v[m] @ (w @ asked)) for m in (0, 1))
        assert found[row] == pytest.approx(1 / (1 + math.exp(small - large)), abs=1e-6)
    mlp = PAIR_ROUTERS.get("pair-mlp-as-printed")(width=5, epochs=2)
    found = mlp.fit(BATTLES, "small", "large").scores(ASKED)
    layers = [v.detach().numpy().astype(np.float64) for v in mlp._network.state_dict().values()]
    for row, asked in enumerate(x):
        hidden = np.maximum(layers[0] @ asked + layers[1], 0)
        small, large = (layers[2] @ hidden + layers[3]).tolist()
        wanted = math.exp(large) / (math.exp(small) + math.exp(large))
        assert found[row] == pytest.approx(wanted, abs=1e-6)
