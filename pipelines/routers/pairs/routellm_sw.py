"""RouteLLM's similarity-weighted ranking over a whole pool: Elo in ten tiers, anew per question."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints, Vectors
from routeyard.pipelines.routers.base import Examples, Queries, listed, usable
from routeyard.pipelines.routers.neighbours.eagle import half, ratings
from routeyard.pipelines.routers.neighbours.wins import Wins

#: Questions ranked at once.
BLOCK = 256


@listed
class SimilarityWeighted:
    """SW of RouteLLM (Ong et al., arXiv 2406.18665), in its published form.

    Task: P(strong beats weak) per question. Models are joined to ten tiers by
    dynamic programming on the variance of their ratings; each train result weighs
    10·10^(s/max s), s its cosine to the question; Bradley-Terry ratings of the
    tiers are fitted anew for every question, ties half a win each. Rule: the strong
    model where the probability reaches a threshold.

    Every model gets its tier's rating, plus a hundredth of its own rating so that
    models of a tier keep an order: over a pool the score is an order of models, and
    a pair's probability is the logistic of a difference. `pair-bt` is the same idea
    without tiers, on preference records.
    """

    name = "routellm-sw"

    def __init__(self, tiers: int = 10, gamma: float = 10.0):
        self.tiers, self.gamma = tiers, gamma

    def fit(self, train: Examples) -> SimilarityWeighted:
        train = usable(train)
        self._vectors = train.queries.vectors()
        wins, m = Wins(train.labels), train.labels.shape[1]
        self._rating = ratings((wins.total() + half(m))[None])[0]
        self._tier = tiers_of(self._rating, self.tiers)
        k = int(self._tier.max()) + 1
        self._won = wins.joined(self._tier, k).reshape(len(train.labels), k * k)
        return self

    def scores(self, queries: Queries) -> Floats:
        vectors = queries.vectors()
        parts = [self._block(vectors[f : f + BLOCK]) for f in range(0, len(vectors), BLOCK)]
        return np.concatenate(parts) if parts else np.empty((0, len(self._rating)))

    def _block(self, vectors: Vectors) -> Floats:
        # Sums over the questions in double precision: their order is no matter.
        similarity = (vectors @ self._vectors.T).astype(np.float64)
        top = np.maximum(similarity.max(axis=1, keepdims=True), 1e-12)
        weight = self.gamma * np.power(self.gamma, np.clip(similarity / top, -1, 1))
        k = int(self._tier.max()) + 1
        won = (weight @ self._won).reshape(-1, k, k)
        if k == 1:
            return np.tile(self._rating, (len(vectors), 1))
        found = ratings(won + half(k))
        return np.asarray(found[:, self._tier] + 0.01 * self._rating)


def tiers_of(rating: Floats, tiers: int) -> Ints:
    """(m,) tier of every model, 0 the lowest: the cut of the sorted ratings into at most
    `tiers` runs whose sum of squared deviations is least.

    >>> tiers_of(np.array([1.0, 9.0, 1.1, 9.2, 5.0]), 3).tolist()
    [0, 2, 0, 2, 1]
    """
    order = np.argsort(rating, kind="stable")
    x, m = rating[order], len(rating)
    tiers = min(tiers, m)
    one, two = np.concatenate([[0], np.cumsum(x)]), np.concatenate([[0], np.cumsum(x**2)])

    def cost(i: int, j: int) -> float:
        return float(two[j] - two[i] - (one[j] - one[i]) ** 2 / (j - i))

    best = np.full((tiers + 1, m + 1), np.inf)
    cut = np.zeros((tiers + 1, m + 1), dtype=np.int64)
    best[0, 0] = 0.0
    for k in range(1, tiers + 1):
        for j in range(k, m + 1):
            options = [best[k - 1, i] + cost(i, j) for i in range(k - 1, j)]
            at = int(np.argmin(options))
            best[k, j], cut[k, j] = options[at], k - 1 + at
    found, end = np.empty(m, dtype=np.int64), m
    for k in range(tiers, 0, -1):
        begin = int(cut[k, end])
        found[order[begin:end]] = k - 1
        end = begin
    return found
