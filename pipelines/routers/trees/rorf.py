"""RoRF: a random forest over embeddings, one output per model; in its published form for a pair."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Ints
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
from routeyard.pipelines.routers.trees.forest import grow, per_tree


@listed
class RoRF:
    """RoRF (Not Diamond, 2025).

    Published task: a pair (a, b) and four classes, a better, both wrong, both right,
    b better; P(a) = P(first) + P(second), so "both right" counts for b, which should
    be the cheap model. Rule: a where P(a) reaches a quantile.

    For M models the plateau study grows one forest with an output per model; so does
    this class. The preset `code` keeps the four classes between the most accurate model
    (a) and the cheapest (b; without costs the next most accurate); other models score
    0. Published: 100 trees, depth 20, all features at each split, seed 420. All
    features of a 384-dimensional embedding make trees alike and slow: the default
    tries a third root's worth. A missing label enters as the model's mean: trees take
    no weights per output.
    """

    name = "rorf"
    #: Whether its constants are published ones (`listed.presets`).
    as_published: bool = False

    def __init__(
        self,
        trees: int = 40,
        depth: int = 10,
        leaf: int = 10,
        features: float | str = "sqrt",
        seed: int = 42,
    ):
        self.trees, self.depth, self.leaf, self.features = trees, depth, leaf, features
        self.seed = seed

    def fit(self, train: Examples) -> RoRF:
        train = usable(train, least_models=2 if self.as_published else 1)
        means = model_means(train.labels)
        self._m = len(means)
        self._pair: tuple[int, int] | None = None
        x = train.queries.vectors()
        if self.as_published:
            cost = mean_cost(train)
            self._pair = strong_and_cheap(means, cost, ranked(train.labels, cost))
            both = train.labels[:, list(self._pair)]
            rows = ~np.isnan(both).any(axis=1)
            x, filled = x[rows], np.eye(4)[classes(both[rows, 0], both[rows, 1])]
        else:
            filled = np.where(np.isnan(train.labels), means, train.labels)
        self._forest = grow(
            x, filled, trees=self.trees, depth=self.depth, leaf=self.leaf,
            features=self.features, seed=self.seed,
        )  # fmt: skip
        return self

    def scores(self, queries: Queries) -> Floats:
        found = per_tree(self._forest, queries.vectors())[0]
        if self._pair is None:
            return found
        out = np.zeros((len(queries), self._m))
        out[:, self._pair[0]] = found[:, 0] + found[:, 1]
        out[:, self._pair[1]] = found[:, 2] + found[:, 3]
        return out


def classes(a: Floats, b: Floats) -> Ints:
    """0 where a is better, 1 both 0, 2 equal and above 0, 3 where b is better.

    >>> classes(np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])).tolist()
    [0, 1, 2, 3]
    """
    return np.where(a > b, 0, np.where(b > a, 3, np.where(a == 0, 1, 2)))


def strong_and_cheap(means: Floats, cost: Floats | None, order: Ints) -> tuple[int, int]:
    """The most accurate model and the cheapest other one (without costs: the next best).

    Args:
        order: (m,) models, the first of which wins a tie.
    """
    strong = int(order[np.argmax(means[order])])
    by = order[np.argsort((-means if cost is None else cost)[order], kind="stable")]
    return strong, int(next(k for k in by if k != strong))
