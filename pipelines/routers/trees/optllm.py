"""OptLLM: forests with an uncertainty, for a batch that is assigned as a whole."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.routers.base import Examples, Queries, listed, model_means, usable
from routeyard.pipelines.routers.trees.forest import grow, per_tree


@listed
class OptLLM:
    """OptLLM (Liu et al., arXiv 2405.15130).

    Task: P(correct) of every (question, model) with its uncertainty, then the
    assignment of a whole batch on the front of accuracy and cost. Prediction: forests
    of depth 10 over bootstraps, p + a·sd over them (a = 1, "robust"). Rule: a heuristic
    search over assignments; its front is that of the rule `batch-budget`, a linear
    program whose solution is a threshold on the trade-off λ.

    Published code weighs its bootstraps by how well they predict their *own* output
    on validation, uses 2 % of the data for training, and lets the optimiser read the
    test questions' true costs: none is followed. The plateau study's `optllm_xgb`
    boosts trees instead. The default adds no bonus: at λ = 0 optimism about rarely
    seen regions only costs accuracy; the preset `code` has a = 1.
    """

    name = "optllm"

    def __init__(
        self,
        trees: int = 40,
        depth: int = 10,
        leaf: int = 20,
        bonus: float = 0.0,
        seed: int = 42,
    ):
        self.trees, self.depth, self.leaf = trees, depth, leaf
        self.bonus, self.seed = bonus, seed

    def fit(self, train: Examples) -> OptLLM:
        train = usable(train)
        means = model_means(train.labels)
        filled = np.where(np.isnan(train.labels), means, train.labels)
        self._forest = grow(
            train.queries.vectors(), filled, trees=self.trees, depth=self.depth, leaf=self.leaf,
            features=0.1, seed=self.seed,
        )  # fmt: skip
        return self

    def scores(self, queries: Queries) -> Floats:
        mean, deviation = per_tree(self._forest, queries.vectors())
        return np.clip(mean + self.bonus * deviation, 0.0, 1.0)
