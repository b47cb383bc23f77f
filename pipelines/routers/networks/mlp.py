"""MLP: a shared hidden layer and one head per model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Vectors
from routeyard.pipelines.routers.base import Examples, Queries, listed, model_means, usable
from routeyard.pipelines.routers.gradient import (
    best_network,
    network_arrays,
    probabilities,
    start_logits,
    with_arrays,
)


@listed
class MLP:
    """Probability that each model is right, from the question's embedding.

    RouterBench (arXiv 2403.12031) trains a network per model; a
    shared hidden layer with one head per model learns the same in one pass.
    Width and weight decay are chosen on the validation questions by loss.
    """

    name = "mlp"

    def __init__(
        self,
        widths: tuple[int, ...] = (64, 256),
        decays: tuple[float, ...] = (1e-2, 1e-1),
        seed: int = 0,
    ):
        self.widths, self.decays, self.seed = widths, decays, seed

    def fit(self, train: Examples) -> MLP:
        train = usable(train)
        vectors = train.queries.vectors()
        held, start = train.validation, start_logits(model_means(train.labels))
        (self.width, self.decay), self._network = best_network(
            candidates(vectors.shape[1], start, self.widths, self.decays),
            vectors,
            train.labels,
            None if held is None else (held.queries.vectors(), held.labels),
            seed=self.seed,
        )
        return self

    def scores(self, queries: Queries) -> Floats:
        return probabilities(self._network, queries.vectors())

    def arrays(self) -> dict[str, Array]:
        """The fitted network, for `saved`."""
        state = network_arrays(self._network, "network.")
        return {**state, "shape": np.array([self._network[0].in_features, self.width])}

    def restore(self, arrays: Any) -> MLP:
        inputs, self.width = (int(v) for v in arrays["shape"])
        start = np.zeros(len(arrays["network.2.bias"]), dtype=np.float32)
        self._network = with_arrays(layers(inputs, self.width, start)(), arrays, "network.")
        return self


def candidates(
    inputs: int, start: Vectors, widths: Sequence[int], decays: Sequence[float]
) -> list[tuple[tuple[int, float], Any, dict[str, float]]]:
    """Networks of every width and weight decay, as `best_network` takes them."""
    return [
        (
            (width, decay),
            layers(inputs, width, start),
            {"weight_decay": decay, "learning_rate": 3e-3},
        )
        for width in widths
        for decay in decays
    ]


def layers(inputs: int, width: int, start: Vectors) -> Any:
    """Builder of a network from embeddings (n, d) to logits (n, len(start))."""

    def build() -> Any:
        import torch
        from torch import nn

        heads = nn.Linear(width, len(start))
        with torch.no_grad():
            heads.bias.copy_(torch.from_numpy(start))
        return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), heads)

    return build
