"""kNN on preference data: how often the large model won nearby."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.routers.base import Queries
from routeyard.pipelines.routers.neighbours.knn import nearest
from routeyard.pipelines.routers.pairs.battles import Battles


class PairKNN:
    """Mean outcome of the k nearest battles between the two models.

    k is chosen on the validation battles by squared error; without any the
    middle of `choices` is taken. The mean over all battles counts as one more
    neighbour.
    """

    name = "pair-knn"

    def __init__(self, choices: tuple[int, ...] = (10, 20, 40, 80, 160, 320)):
        self.choices = choices

    def fit(self, train: Battles, small: str, large: str) -> PairKNN:
        self._vectors, self._won = train.between(small, large)
        self.k = self.choices[len(self.choices) // 2]
        if train.validation is not None:
            vectors, won = train.validation.between(small, large)
            near = self._won[nearest(vectors, self._vectors, max(self.choices))[0]]
            self.k = min(
                self.choices, key=lambda k: (float(np.mean((self._mean(near, k) - won) ** 2)), k)
            )
        return self

    def _mean(self, near: Floats, k: int) -> Floats:
        some = near[:, :k]
        return np.asarray((some.sum(axis=1) + self._won.mean()) / (some.shape[1] + 1))

    def scores(self, queries: Queries) -> Floats:
        near = nearest(queries.vectors(), self._vectors, self.k)[0]
        return self._mean(self._won[near], self.k)


class PairNearest:
    """Outcome of the single nearest battle between the two models.

    The confidence-driven router paper (appendix A.1) takes the most similar
    preference record and nothing else.
    """

    name = "pair-knn-as-printed"

    def fit(self, train: Battles, small: str, large: str) -> PairNearest:
        self._vectors, self._won = train.between(small, large)
        return self

    def scores(self, queries: Queries) -> Floats:
        return np.asarray(self._won[nearest(queries.vectors(), self._vectors, 1)[0][:, 0]])
