"""Matrix factorisation on preference data: every model has a vector, every battle counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints, Vectors
from routeyard.pipelines.routers.base import Queries
from routeyard.pipelines.routers.factors.matrix_factorisation import RATES
from routeyard.pipelines.routers.gradient import best_network, probabilities
from routeyard.pipelines.routers.pairs.battles import Battles


class PairMatrixFactorisation:
    """P(a beats b on q) = σ(δ(a, q) − δ(b, q)), δ(m, q) = w·(v_m ⊙ (W q + b)) + β_m.

    RouteLLM (arXiv 2406.18665), "matrix factorization". Battles of
    other models help to place the two. The dimension is chosen on the
    validation battles by loss.
    """

    name = "pair-mf"

    def __init__(self, dimensions: tuple[int, ...] = (16, 64), seed: int = 0):
        self.dimensions, self.seed = dimensions, seed

    def fit(self, train: Battles, small: str, large: str) -> PairMatrixFactorisation:
        self._pair = (train.position(large), train.position(small))
        inputs = _inputs(train.vectors, train.first, train.second)
        held = None
        if train.validation is not None:
            other = train.validation
            held = (
                _inputs(other.vectors, other.first, other.second),
                other.outcome[:, None],
            )
        width, models = train.vectors.shape[1], len(train.model_ids)
        self.dimension, self._network = best_network(
            [(d, factors(width, d, models), RATES) for d in self.dimensions],
            inputs,
            train.outcome[:, None],
            held,
            seed=self.seed,
        )
        return self

    def scores(self, queries: Queries) -> Floats:
        vectors = queries.vectors()
        first, second = (np.full(len(vectors), at, dtype=np.int64) for at in self._pair)
        return probabilities(self._network, _inputs(vectors, first, second))[:, 0]


def _inputs(vectors: Vectors, first: Ints, second: Ints) -> Vectors:
    """Embedding and, in the last two columns, the two models' positions."""
    return np.column_stack([vectors, first, second]).astype(np.float32)


def factors(inputs: int, dimension: int, models: int, *, bias: bool = True) -> Any:
    """Builder of a network from `_inputs` to the logit that the first model wins."""

    def build() -> Any:
        import torch
        from torch import nn

        class Difference(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.project = nn.Linear(inputs, dimension, bias=bias)
                self.models = nn.Parameter(torch.randn(models, dimension) / dimension**0.5)
                if bias:
                    self.bias = nn.Parameter(torch.zeros(models))

            def forward(self, x: Any) -> Any:
                question = self.project(x[:, :-2])
                a, b = x[:, -2].long(), x[:, -1].long()
                won = (question * (self.models[a] - self.models[b])).sum(dim=1)
                return (won + self.bias[a] - self.bias[b] if bias else won)[:, None]

        return Difference()

    return build
