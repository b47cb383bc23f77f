"""Matrix factorisation: a vector per model, multiplied into the projected question."""

from __future__ import annotations

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

#: How factors are trained.
RATES = {"learning_rate": 1e-2, "weight_decay": 1e-2}


@listed
class MatrixFactorisation:
    """score(m, q) = σ(w·(v_m ⊙ (W e_q + b)) + β_m).

    The bilinear form of EmbedLLM (arXiv 2410.02223) and RouteLLM
    (arXiv 2406.18665, "matrix factorization"), trained on
    correctness. The dimension is chosen on the validation questions by loss.
    """

    name = "mf"
    #: Whether the map of a question and the model have a bias.
    bias = True

    def __init__(self, dimensions: tuple[int, ...] = (16, 64), seed: int = 0):
        self.dimensions, self.seed = dimensions, seed

    def fit(self, train: Examples) -> MatrixFactorisation:
        train = usable(train)
        vectors = train.queries.vectors()
        held = train.validation
        start = start_logits(model_means(train.labels))
        self.dimension, self._network = best_network(
            [
                (d, factorised(vectors.shape[1], d, start, bias=self.bias), RATES)
                for d in self.dimensions
            ],
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
        return network_arrays(self._network)

    def restore(self, arrays: Any) -> MatrixFactorisation:
        self.dimension = arrays["models"].shape[1]
        start = np.zeros(len(arrays["models"]), dtype=np.float32)
        inputs = arrays["project.weight"].shape[1]
        network = factorised(inputs, self.dimension, start, bias=self.bias)()
        self._network = with_arrays(network, arrays)
        return self


@listed
class MatrixFactorisationAsPrinted(MatrixFactorisation):
    """score(m, q) = σ(u_mᵀ·W·e_q) (RouterBench+, appendix E): no bias anywhere, nothing chosen.

    The paper prints no size and no loss: 232 is EmbedLLM's, which it cites, and the loss
    is the cross-entropy.
    """

    name = "mf-as-printed"
    bias = False

    def __init__(self, size: int = 232, seed: int = 0):
        super().__init__((size,), seed)


def factorised(inputs: int, dimension: int, start: Vectors, *, bias: bool = True) -> Any:
    """Builder of a network from embeddings (n, d) to logits (n, m); without `bias` no constants."""

    def build() -> Any:
        import torch
        from torch import nn

        class Factors(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.project = nn.Linear(inputs, dimension, bias=bias)
                # w is absorbed by the model vectors: w·(v ⊙ x) = (w ⊙ v)·x.
                self.models = nn.Parameter(torch.randn(len(start), dimension) / dimension**0.5)
                self.bias = nn.Parameter(torch.from_numpy(start.copy())) if bias else None

            def forward(self, x: Any) -> Any:
                found = self.project(x) @ self.models.T
                return found if self.bias is None else found + self.bias

        return Factors()

    return build
