"""EmbeddingMLP: the probes' counterpart that reads an encoder's vector of the question."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.routers.base import listed
from routeyard.pipelines.routers.networks.trained import (
    Trained,
    TrainingBatch,
    dropped,
    head,
    logistic_loss,
)


@listed
class EmbeddingMLP(Trained):
    """Two hidden layers on the frozen embedding (RouterXBench, section 5.1).

    Task: a logit per model; the paper has one, of the small model. Published: 256 and 64
    neurons, ReLU, dropout 0.1, cross-entropy, Adam 1e-4, 50 epochs, batch 32.
    """

    name = "embedding-mlp"

    def build(self, inputs: int, start: Vectors) -> Any:
        from torch import nn

        sizes = (inputs, *self.settings["widths"])
        share = self.settings["dropout"]

        class Layers(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                pairs = pairwise(sizes)
                self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
                self.head = head(sizes[-1], start)

            def forward(self, x: Any, noise: Any = None) -> Any:
                for layer in self.hidden:
                    x = dropped(layer(x).relu(), share, noise)
                return self.head(x)

        return Layers()

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        logits = network(batch.x, batch.noise)
        return logistic_loss(logits, batch.y, batch.known)
