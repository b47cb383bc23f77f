"""MLP on preference data: probability that the large model wins, from the embedding."""

from __future__ import annotations

import numpy as np

from pipelines.routers.base import Floats, Queries
from pipelines.routers.gradient import probabilities, start_logits, train_network
from pipelines.routers.networks.mlp import layers
from pipelines.routers.pairs.battles import Battles


class PairMLP:
    """One hidden layer on the battles between the two models; ties are one half.

    Width and weight decay are chosen on the validation battles by loss.
    """

    name = "pair-mlp"

    def __init__(
        self,
        widths: tuple[int, ...] = (32, 128),
        decays: tuple[float, ...] = (1e-2, 1e-1),
        seed: int = 0,
    ):
        self.widths, self.decays, self.seed = widths, decays, seed

    def fit(self, train: Battles, small: str, large: str) -> PairMLP:
        vectors, won = train.between(small, large)
        held = None
        if train.validation is not None:
            held_vectors, held_won = train.validation.between(small, large)
            held = (held_vectors, held_won[:, None])
        choices = [(width, decay) for width in self.widths for decay in self.decays]
        best = float("inf")
        for width, decay in choices if held is not None else choices[:1]:
            network, loss = train_network(
                layers(vectors.shape[1], width, start_logits(np.array([won.mean()]))),
                vectors,
                won[:, None],
                held,
                seed=self.seed,
                weight_decay=decay,
                learning_rate=3e-3,
            )
            if loss < best:
                best, self.width, self.decay, self._network = loss, width, decay, network
        return self

    def scores(self, queries: Queries) -> Floats:
        return probabilities(self._network, queries.vectors())[:, 0]
