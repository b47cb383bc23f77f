"""A model first, then how much effort: quality of a model, and what an arm adds to it."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.matrix.examples import Arms
from routeyard.pipelines.routers.base import Examples, Queries, listed, model_means, usable
from routeyard.pipelines.routers.linear.ridge import solved


@listed
class TwoLevel:
    """Our own router for pools of arms, such as models × efforts.

    Task: first the quality of each model, the mean over its arms, by one ridge regression on the
    questions' embeddings (`alpha`); then how far each of its arms is from that, by another with
    a stronger penalty (`alpha_arm`), since arms of one model answer alike. The score of an arm is
    the sum, clipped to [0, 1]. Rule: the best arm, which is the best arm of the model that has it;
    selection rules weigh its costs. A model without arms has one level, as in `ridge`.

    An arm that lacks labels of some questions is compared with the others by how far each answer
    is from its own arm's mean.
    """

    name = "two-level"

    def __init__(self, alpha: float = 10.0, alpha_arm: float = 100.0):
        self.alpha, self.alpha_arm = alpha, alpha_arm

    def fit(self, train: Examples) -> TwoLevel:
        train = usable(train)
        x, labels = train.queries.vectors(), train.labels
        self._model = models_of(train.arms, labels.shape[1])
        means = model_means(labels)
        models = _by_model(labels - means, self._model) + _by_model(means[None], self._model)
        self._first, self._level = solved(x, models, self.alpha)
        self._then, self._step = solved(x, labels - models[:, self._model], self.alpha_arm)
        return self

    def scores(self, queries: Queries) -> Floats:
        x = queries.vectors()
        models = x @ self._first + self._level
        return np.clip(models[:, self._model] + x @ self._then + self._step, 0.0, 1.0)


def models_of(arms: Arms | None, columns: int) -> Ints:
    """(m,) number of the model that each column is an arm of: 0, 1, …"""
    if arms is None:
        return np.arange(columns)
    return np.asarray(np.unique(arms.model, return_inverse=True)[1], dtype=np.int64)


def _by_model(values: Floats, model: Ints) -> Floats:
    """(n, models) mean of the known values of each model's arms; NaN where none is known."""
    found = np.empty((len(values), int(model.max()) + 1))
    for k in range(found.shape[1]):
        arms = values[:, model == k]
        known = ~np.isnan(arms)
        count = known.sum(axis=1)
        total = np.where(known, arms, 0.0).sum(axis=1)
        found[:, k] = np.where(count, total / np.maximum(count, 1), np.nan)
    return found
