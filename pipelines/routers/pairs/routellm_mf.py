"""RouteLLM's matrix factorisation over a whole pool: δ(m, q) learnt from who beat whom."""

from __future__ import annotations

from typing import Any

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.routers.base import listed
from routeyard.pipelines.routers.networks.model_pairs import pairs_of
from routeyard.pipelines.routers.networks.p2l import bradley_terry
from routeyard.pipelines.routers.networks.trained import Trained, TrainingBatch, masked_mean


@listed
class RouteLLMFactorisation(Trained):
    """MF of RouteLLM (Ong et al., arXiv 2406.18665), in its published form.

    Task: P(a beats b on q) = σ(δ(a, q) − δ(b, q)) with δ = w·(v̂_m ⊙ W e), v̂_m of
    unit norm, W without bias, Gaussian noise of `noise` on e while training. Loss:
    cross-entropy of the winner; ties are dropped. Rule: the strong model where the
    probability reaches a threshold; over a pool, argmax δ. Published: dimension 128,
    Adam 3e-4, batch 64, 100 epochs, noise 0.1.

    `pair-mf` is the form on preference records with a level per model and ties as
    half a win.
    """

    name = "routellm-mf"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        size, m = self.settings["size"], len(start)

        class Delta(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.models = nn.Parameter(torch.randn(m, size))
                self.project = nn.Linear(inputs, size, bias=False)
                self.out = nn.Linear(size, 1, bias=False)

            def forward(self, x: Any) -> Any:
                v = nn.functional.normalize(self.models, dim=1)
                return (self.project(x) * self.out.weight[0]) @ v.T

        return Delta()

    def read(self, network: Any, x: Any) -> Any:
        return network(x)

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        import torch

        x = batch.x
        if self.settings["noise"] and batch.noise is not None:
            x = x + self.settings["noise"] * torch.randn(x.shape, generator=batch.noise)
        delta = network(x)
        first, second, sign, weight = pairs_of(batch.y, batch.known, batch.noise)
        each = bradley_terry(delta[:, first], delta[:, second], sign)
        return masked_mean(each, weight * sign.abs())
