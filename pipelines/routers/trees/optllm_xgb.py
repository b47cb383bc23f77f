"""OptLLM's older predictor, by boosted trees: one XGBoost ensemble per model."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.routers.base import Examples, Queries, listed, model_means, usable
from routeyard.pipelines.routers.trees.boosted import boost, logits


@listed
class OptLLMBoosted:
    """The boosted form of OptLLM (Liu et al., arXiv 2405.15130); `optllm_xgb` of the plateau study.

    Task: P(correct) per model, each by its own XGBoost classifier; the assignment is
    `optllm`'s. Loss: cross-entropy. Published: 1,000 trees of depth 100 a model
    (preset `code`), which repeat the labels they have seen; the default is a few
    shallow ones. A model without any label keeps the pool's mean.

    No rows or columns are sampled, so a fit has no chance in it. Needs the extra
    `xgboost`; a fitted router is arrays and is read without it.
    """

    name = "optllm-xgb"

    def __init__(self, trees: int = 30, depth: int = 2, rate: float = 0.1):
        self.trees, self.depth, self.rate = trees, depth, rate

    def fit(self, train: Examples) -> OptLLMBoosted:
        train = usable(train)
        means = model_means(train.labels)
        unseen = np.isnan(train.labels).all(axis=0)
        labels = np.where(unseen & np.isnan(train.labels), means, train.labels)
        self._ensemble = boost(
            train.queries.vectors(), labels, trees=self.trees, depth=self.depth, rate=self.rate,
            seed=0,
        )  # fmt: skip
        return self

    def scores(self, queries: Queries) -> Floats:
        return np.asarray(1 / (1 + np.exp(-logits(self._ensemble, queries.vectors()))))
