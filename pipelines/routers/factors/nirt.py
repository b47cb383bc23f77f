"""NIRT: item response with a monotone network; a more able model is never less likely right."""

from __future__ import annotations

from typing import Any

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.routers.base import listed
from routeyard.pipelines.routers.networks.trained import (
    Trained,
    TrainingBatch,
    dropped,
    logistic_loss,
)


@listed
class NIRT(Trained):
    """NIRT of IRT-Router (Song et al., arXiv 2506.01048).

    Task: P(correct) from disc_i·(σ_m − κ_i)⊙r_i, with mastery σ_m and demand κ_i of
    25 abilities in (0, 1), disc_i = 9·σ(w·e) and relevance r_i (softmax), through
    two layers of non-negative weights (tanh between, dropout 0.5). Loss:
    cross-entropy. Rule as for MIRT.

    In the paper a language model names 25 abilities of clusters and says which are
    relevant. Here no model is asked: r_i is a softmax of a linear map of the embedding,
    learnt with the rest, and with `scaled` times their number, so that the abilities
    enter with weight 1 on average. The published layers are 25-512-1 with Adam 2e-3 and
    r_i unscaled (preset `code`); weights enter by their absolute value, as there.
    """

    name = "nirt"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        s, m = self.settings, len(start)
        size, width = s["size"], s["width"]

        class Monotone(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                level = torch.from_numpy(start.copy())[:, None]
                self.mastery = nn.Parameter(level + 0.5 * torch.randn(m, size))
                self.demand = nn.Linear(inputs, size)
                self.sharpness = nn.Linear(inputs, 1)
                self.relevance = nn.Linear(inputs, size)
                self.first, self.second = nn.Linear(size, width), nn.Linear(width, 1)

            def forward(self, x: Any, noise: Any = None) -> Any:
                relevance = torch.softmax(self.relevance(x), dim=1) * (size if s["scaled"] else 1)
                sharp = 9 * torch.sigmoid(self.sharpness(x))
                gap = torch.sigmoid(self.mastery) - torch.sigmoid(self.demand(x))[:, None, :]
                seen = sharp[:, None, :] * gap * relevance[:, None, :]
                hidden = torch.tanh(seen @ self.first.weight.abs().T + self.first.bias)
                hidden = dropped(hidden, s["dropout"], noise)
                return (hidden @ self.second.weight.abs().T)[..., 0] + self.second.bias

        return Monotone()

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        logits = network(batch.x, batch.noise)
        return logistic_loss(logits, batch.y, batch.known)
