"""MLP on preference data: probability that the large model wins, from the embedding."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.routers.base import Queries
from routeyard.pipelines.routers.gradient import best_network, probabilities, start_logits
from routeyard.pipelines.routers.networks.mlp import candidates
from routeyard.pipelines.routers.pairs.battles import Battles


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
        start = start_logits(np.array([won.mean()]))
        (self.width, self.decay), self._network = best_network(
            candidates(vectors.shape[1], start, self.widths, self.decays),
            vectors,
            won[:, None],
            held,
            seed=self.seed,
        )
        return self

    def scores(self, queries: Queries) -> Floats:
        return probabilities(self._network, queries.vectors())[:, 0]
