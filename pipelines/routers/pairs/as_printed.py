"""Matrix factorisation and MLP of the confidence-driven router paper, as its appendix prints them.

Similarity-weighted ranking and kNN of that paper are `pair-bt-as-printed` and
`pair-knn-as-printed`. A training record is (question, winner, loser): ties teach these two
nothing. No setting is chosen and no epoch kept on validation questions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.routers.base import Queries
from routeyard.pipelines.routers.gradient import probabilities, train_network
from routeyard.pipelines.routers.pairs.battles import Battles
from routeyard.pipelines.routers.pairs.matrix_factorisation import factors


class PairBilinear:
    """P(a beats b) = σ(s(a, q) − s(b, q)), s(m, q) = v_mᵀ·W·q (appendix A.1, equation 9).

    s is "a bilinear function of the model and query embeddings": no bias anywhere. The
    size, 128, is RouteLLM's, whose approach the paper names. `pair-mf` has biases, learns from
    ties and chooses its size.
    """

    name = "pair-mf-as-printed"

    def __init__(self, size: int = 128, epochs: int = 30, seed: int = 0):
        self.size, self.epochs, self.seed = size, epochs, seed

    def fit(self, train: Battles, small: str, large: str) -> PairBilinear:
        rows = decided(train.outcome)
        self._pair = (train.position(large), train.position(small))
        places = np.stack([train.first[rows], train.second[rows]], axis=1)
        inputs = np.column_stack([train.vectors[rows], places]).astype(np.float32)
        self._network, _ = train_network(
            factors(train.vectors.shape[1], self.size, len(train.model_ids), bias=False),
            inputs,
            train.outcome[rows, None],
            None,
            seed=self.seed,
            epochs=self.epochs,
        )
        return self

    def scores(self, queries: Queries) -> Floats:
        vectors = queries.vectors()
        places = np.tile(np.array(self._pair, dtype=np.float32), (len(vectors), 1))
        return probabilities(self._network, np.column_stack([vectors, places]))[:, 0]


class PairSoftmaxMLP:
    """Softmax over the two models of a two-layer perceptron (appendix A.1, equation 10).

    The paper gives no width; 100 is RouterBench's. Of two outputs the softmax is the sigmoid
    of their difference, which is what is trained. Battles of other models teach nothing.
    """

    name = "pair-mlp-as-printed"

    def __init__(self, width: int = 100, epochs: int = 30, seed: int = 0):
        self.width, self.epochs, self.seed = width, epochs, seed

    def fit(self, train: Battles, small: str, large: str) -> PairSoftmaxMLP:
        vectors, won = train.between(small, large)
        rows = decided(won)
        self._network, _ = train_network(
            _perceptron(vectors.shape[1], self.width),
            vectors[rows],
            won[rows, None],
            None,
            seed=self.seed,
            epochs=self.epochs,
        )
        return self

    def scores(self, queries: Queries) -> Floats:
        return probabilities(self._network, queries.vectors())[:, 0]


def _perceptron(inputs: int, width: int) -> Any:
    def build() -> Any:
        from torch import nn

        class Perceptron(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.layers = nn.Sequential(
                    nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 2)
                )

            def forward(self, x: Any) -> Any:
                small, large = self.layers(x).split(1, dim=1)
                return large - small

        return Perceptron()

    return build


def decided(outcome: Floats) -> Ints:
    """Positions of the battles that somebody won.

    Raises:
        BadInput: all are ties.
    """
    rows = np.flatnonzero(outcome != 0.5)
    if not len(rows):
        raise BadInput(
            "all preference records are ties, and this router learns from winners alone",
            next_step="lower the rule's `tau`, or train `pair-mf` or `pair-mlp`, which read ties",
        )
    return rows
