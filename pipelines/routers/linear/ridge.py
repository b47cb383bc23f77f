"""Ridge regression: every model's label is a linear function of the embedding."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.routers.base import Examples, Queries, listed, model_means, usable


@listed
class Ridge:
    """Least squares with penalty `alpha` on the weights, not on the level.

    All models share one factorisation; a model with missing labels is solved on
    the questions it has labels for. Scores are clipped to [0, 1].
    """

    name = "ridge"

    def __init__(self, alpha: float = 30.0):
        self.alpha = alpha

    def fit(self, train: Examples) -> Ridge:
        train = usable(train)
        x = train.queries.vectors().astype(np.float64)
        known = ~np.isnan(train.labels)
        means = model_means(train.labels)
        self._weights = np.zeros((x.shape[1], len(means)))
        self._level = means.copy()
        patterns, which = np.unique(known, axis=1, return_inverse=True)
        for pattern in range(patterns.shape[1]):
            rows, models = patterns[:, pattern], np.flatnonzero(which == pattern)
            if not rows.any():
                continue
            some = x[rows]
            centre = some.mean(axis=0)
            some = some - centre
            y = train.labels[np.ix_(rows, models)]
            gram = some.T @ some + self.alpha * np.eye(x.shape[1])
            weights = np.linalg.solve(gram, some.T @ (y - y.mean(axis=0)))
            self._weights[:, models] = weights
            self._level[models] = y.mean(axis=0) - centre @ weights
        return self

    def scores(self, queries: Queries) -> Floats:
        return np.clip(queries.vectors() @ self._weights + self._level, 0.0, 1.0)
