"""Avengers-Pro: performance and efficiency of the nearest clusters, softly weighted."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.matrix.ranking import ranked
from routeyard.pipelines.routers.base import (
    Examples,
    Floats,
    Queries,
    listed,
    mean_cost,
    model_means,
    usable,
)
from routeyard.pipelines.routers.clusters.kmeans import clustered


@listed
class AvengersPro:
    """Avengers-Pro (Zhang et al., "Beyond GPT-5", DAI 2025).

    Task: rank models per cluster. K-means of the train questions (published: 25);
    of a question the `near` closest clusters (3), weighted by softmax(−β·distance)
    with β = 9 and distance 1 − e·centre (centres are not normalised again).

    Default score: the weighted mean of the clusters' mean labels, a probability, so
    that cost is a selection rule's business. Presets `text` and `code`: in each cluster
    performance is min-max scaled over models and efficiency is 1 − cost/greatest
    cost, x = α·performance + (1−α)·efficiency, and what is summed is the weighted
    *reciprocal rank* of x, 1/(rank + 1). Ranks throw away how far models are apart.
    Published code counts an unknown cost as 0; here α < 1 with unknown cost is
    refused.
    """

    name = "avengers-pro"
    #: Whether its constants are published ones (`listed.presets`).
    as_published: bool = False

    def __init__(
        self,
        clusters: int = 25,
        near: int = 3,
        beta: float = 9.0,
        alpha: float = 1.0,
        restarts: int = 1,
        seed: int = 42,
    ):
        self.clusters, self.near, self.beta, self.alpha = clusters, near, beta, alpha
        self.restarts, self.seed = restarts, seed

    def fit(self, train: Examples) -> AvengersPro:
        train = usable(train)
        vectors = train.queries.vectors()
        k = min(self.clusters, len(np.unique(vectors, axis=0)))
        member, self._centres = clustered(vectors, k, self.seed, self.restarts)
        prior = model_means(train.labels)
        known = ~np.isnan(train.labels)
        filled = np.where(known, train.labels, 0.0)
        # One answer at the model's mean keeps small clusters from extremes; not published.
        one = 0 if self.as_published else 1
        total, n = np.tile(one * prior, (k, 1)), np.full((k, len(prior)), float(one))
        np.add.at(total, member, filled)
        np.add.at(n, member, known)
        self._means = np.where(n > 0, total / np.maximum(n, 1), prior)
        if self.as_published:
            self._means = self._ranked(train)
        return self

    def _ranked(self, train: Examples) -> Floats:
        """(k, m) reciprocal ranks of performance and efficiency."""
        low, high = self._means.min(axis=1), self._means.max(axis=1)
        spread = (high - low)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            performance = np.where(spread > 0, (self._means - low[:, None]) / spread, 1.0)
        worth = self.alpha * performance
        if self.alpha < 1:
            cost = mean_cost(train)
            if cost is None:
                from routeyard.pipelines.errors import BadInput

                raise BadInput(
                    "Avengers-Pro with α < 1 needs costs, and none is known for all models",
                    next_step="set alpha=1, or give the release prices",
                )
            worth = worth + (1 - self.alpha) * (1 - cost / max(float(cost.max()), 1e-300))
        first = ranked(train.labels, mean_cost(train))
        rank = np.empty(worth.shape)
        rank[:, first] = np.argsort(np.argsort(-worth[:, first], axis=1, kind="stable"), axis=1)
        return 1.0 / (rank + 1)

    def scores(self, queries: Queries) -> Floats:
        distance = 1 - queries.vectors().astype(np.float64) @ self._centres.T
        near = np.argsort(distance, axis=1, kind="stable")[:, : self.near]
        closest = np.take_along_axis(distance, near, axis=1)
        weight = np.exp(-self.beta * (closest - closest[:, :1]))
        weight /= weight.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("nk,nkm->nm", weight, self._means[near]))
