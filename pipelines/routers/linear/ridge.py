"""Ridge regression: every model's label is a linear function of the embedding."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats, Vectors
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
        self._weights, self._level = solved(train.queries.vectors(), train.labels, self.alpha)
        return self

    def scores(self, queries: Queries) -> Floats:
        return np.clip(queries.vectors() @ self._weights + self._level, 0.0, 1.0)


def solved(vectors: Vectors, values: Floats, alpha: float) -> tuple[Floats, Floats]:
    """(d, m) weights and (m,) levels of ridge regressions of the known values on the vectors.

    A column without any known value has no weights and the mean of all values.
    """
    x = vectors.astype(np.float64)
    known = ~np.isnan(values)
    weights, level = np.zeros((x.shape[1], values.shape[1])), model_means(values)
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    for pattern in range(patterns.shape[1]):
        rows, models = patterns[:, pattern], np.flatnonzero(which == pattern)
        if not rows.any():
            continue
        some = x[rows]
        centre = some.mean(axis=0)
        some = some - centre
        y = values[np.ix_(rows, models)]
        gram = some.T @ some + alpha * np.eye(x.shape[1])
        found = np.linalg.solve(gram, some.T @ (y - y.mean(axis=0)))
        weights[:, models] = found
        level[models] = y.mean(axis=0) - centre @ found
    return weights, level
