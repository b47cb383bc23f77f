"""RouteLLM's classifier: strong wins, tie, weak wins, from the question."""

from __future__ import annotations

from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Vectors
from routeyard.pipelines.matrix.ranking import ranked
from routeyard.pipelines.routers.base import Examples, listed, mean_cost, model_means, strongest
from routeyard.pipelines.routers.networks.trained import Trained, TrainingBatch, masked_mean
from routeyard.pipelines.routers.trees.rorf import strong_and_cheap


@listed
class RouteLLMClassifier(Trained):
    """BERT classifier of RouteLLM (Ong et al., arXiv 2406.18665) on a frozen embedding.

    Task: three classes of a pair; P(strong) = 1 − (P(tie) + P(weak)). Loss:
    cross-entropy. Rule: the strong model where the probability reaches a threshold.

    Over a pool there is such a triple for every model against the most accurate
    one: the score of a model is P(it wins) − P(it loses), 0 for the reference.
    The preset `code` has the one pair of the most accurate and the cheapest model:
    the strong one scores P(strong), the weak one the rest, all others nothing.
    RouteLLM's causal form, a fine-tuned 8-billion model that writes a grade, has no
    frozen counterpart and is not here.
    """

    name = "routellm-bert"

    def fit(self, train: Examples) -> RouteLLMClassifier:
        self._pair = (strongest(train), -1)
        if self.as_published:
            from routeyard.pipelines.routers.base import usable

            usable(train, least_models=2)
            cost = mean_cost(train)
            order = ranked(train.labels, cost)
            self._pair = strong_and_cheap(model_means(train.labels), cost, order)
        super().fit(train)
        return self

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        width, m = self.settings["width"], len(start)
        out = nn.Linear(width, 3 * m)
        with torch.no_grad():
            out.weight.mul_(0.1)
            out.bias.zero_()
            level = torch.sigmoid(torch.from_numpy(start.copy()))
            # Begin with the reference ahead by what its level is ahead.
            out.bias[2::3] = 2 * (level.max() - level)
        return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), out)

    def targets(self, train: Examples) -> dict[str, Array]:
        gap = train.labels - train.labels[:, [self._pair[0]]]
        known = ~np.isnan(gap)
        # 0: the model wins, 1: tie, 2: the reference wins.
        place = np.where(known, 1 - np.sign(np.where(known, gap, 0.0)), 1).astype(np.int64)
        return {"place": place, "counts": known.astype(np.float32)}

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        from torch.nn.functional import cross_entropy

        logits = network(batch.x).unflatten(1, (-1, 3)).transpose(1, 2)
        each = cross_entropy(logits, batch.more["place"], reduction="none")
        return masked_mean(each, batch.more["counts"])

    def read(self, network: Any, x: Any) -> Any:
        import torch

        p = torch.softmax(network(x).unflatten(1, (-1, 3)), dim=2)
        strong, weak = self._pair
        if weak < 0:
            found = p[..., 0] - p[..., 2]
            found[:, strong] = 0.0
            return found
        out = torch.zeros(p.shape[:2])
        out[:, strong] = p[:, weak, 2]
        out[:, weak] = 1 - p[:, weak, 2]
        return out

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "pair": np.array(self._pair)}

    def restore(self, arrays: Any) -> RouteLLMClassifier:
        self._pair = (int(arrays["pair"][0]), int(arrays["pair"][1]))
        super().restore(arrays)
        return self
