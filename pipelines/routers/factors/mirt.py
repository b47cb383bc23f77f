"""MIRT: multidimensional item response theory, a model's ability against a question's demand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Vectors
from routeyard.pipelines.routers.base import Queries, listed
from routeyard.pipelines.routers.networks.trained import Trained


@listed
class MIRT(Trained):
    """MIRT of IRT-Router (Song et al., arXiv 2506.01048).

    Task: P(correct) = σ(a_i·θ_m − b_i) with discrimination a_i = softplus(W_a e),
    difficulty b_i = w_b·e and ability θ_m of 25 dimensions. Loss: cross-entropy.
    Rule of the paper: a·p − (1 − a)·price with a = 0.8 on the output price; here
    the rule `utility` on measured costs.

    The published θ_m is linear in the embedding of a text that describes the model;
    with M models and distinct texts that is an ability per model, which is what is
    learnt here. Its query vector at test time is mixed with the mean of its
    neighbours, (1 − λ)·e + λ·mean, λ = 0.3: setting `mix`, 0 by default.
    Published: Adam 1e-3, batch 512, 9 epochs, no biases.
    """

    name = "mirt"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        size, m = self.settings["size"], len(start)
        level = torch.from_numpy(start.copy())

        class Response(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                # Small around the level that softplus(0) passes on: Σ_k ln 2 · θ = level.
                common = level[:, None] / (size * float(np.log(2)))
                self.ability = nn.Parameter(common + 0.1 * torch.randn(m, size))
                self.discrimination = nn.Linear(inputs, size, bias=False)
                self.difficulty = nn.Linear(inputs, 1, bias=False)

            def forward(self, x: Any) -> Any:
                a = nn.functional.softplus(self.discrimination(x))
                return a @ self.ability.T - self.difficulty(x)

        return Response()

    def fit(self, train: Any) -> MIRT:
        self._memory = train.queries.vectors() if self.settings["mix"] else None
        super().fit(train)
        return self

    def scores(self, queries: Queries) -> Floats:
        if self._memory is None:
            return super().scores(queries)
        from routeyard.pipelines.routers.neighbours.knn import nearest

        own, mix = queries.vectors(), self.settings["mix"]
        near = nearest(own, self._memory, self.settings["neighbours"])[0]
        mixed = (1 - mix) * own + mix * self._memory[near].mean(axis=1)
        return super().scores(replace(queries, embeddings=mixed.astype(np.float32)))

    def arrays(self) -> dict[str, Array]:
        extra = {} if self._memory is None else {"memory": self._memory}
        return {**super().arrays(), **extra}

    def restore(self, arrays: Any) -> MIRT:
        self._memory = arrays.get("memory")
        super().restore(arrays)
        return self
