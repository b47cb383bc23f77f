"""Pareto-random: a random model among those that no other beats in accuracy and cost."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Bools
from routeyard.pipelines.routers.base import (
    Examples,
    Floats,
    Queries,
    listed,
    mean_cost,
    model_means,
    usable,
)
from routeyard.pipelines.routers.references.uniform import UniformRandom


@listed
class ParetoRandom:
    """Uniform over the models on the cost-accuracy frontier of the train questions.

    CSCR's baseline "Pareto-optimal routing" (section 4.1), after RouterBench. Without
    known costs the frontier is the most accurate model alone.
    """

    name = "pareto-random"

    def __init__(self, seed: int = 0):
        self.seed = seed

    def fit(self, train: Examples) -> ParetoRandom:
        train = usable(train)
        self._salt = UniformRandom(self.seed).fit(train)._salt
        cost = mean_cost(train)
        level = np.zeros(len(train.model_ids)) if cost is None else cost
        self._front = on_frontier(model_means(train.labels), level)
        return self

    def scores(self, queries: Queries) -> Floats:
        uniform = UniformRandom(self.seed)
        uniform._salt = self._salt
        # Draws lie in [0, 1): a model off the frontier is below all that are on it.
        return np.where(self._front, 1.0, 0.0) + uniform.scores(queries)


def on_frontier(accuracy: Floats, cost: Floats) -> Bools:
    """(m,) models such that no other is at least as good and as cheap, and better in one.

    >>> on_frontier(np.array([0.9, 0.5, 0.4]), np.array([3.0, 1.0, 2.0])).tolist()
    [True, True, False]
    """
    as_good = accuracy[None, :] >= accuracy[:, None]
    as_cheap = cost[None, :] <= cost[:, None]
    better = (accuracy[None, :] > accuracy[:, None]) | (cost[None, :] < cost[:, None])
    return np.asarray(~np.any(as_good & as_cheap & better, axis=1))
