"""EmbedLLM: a two-class head on the product of a model's and a question's vector."""

from __future__ import annotations

from typing import Any

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.routers.base import listed
from routeyard.pipelines.routers.networks.trained import Trained, TrainingBatch, logistic_loss


@listed
class EmbedLLM(Trained):
    """EmbedLLM (Zhuang et al., arXiv 2410.02223).

    Task: correctness of every (model, question). Logits of two classes,
    Linear_2(P_m ⊙ (W e + b)), with P_m and the projection of one size (232 in the
    published code) and Gaussian noise of 0.05 added to e while training. Loss:
    cross-entropy of the two classes, which is the logistic loss of their
    difference. Rule: argmax of logit_1 − logit_0.

    The published code takes missing labels as wrong, adds the noise in place to
    the stored embedding, and looks at the test loss after each epoch to choose one.
    None of that is followed. Adam 1e-4, batch 2048, 50 epochs are its settings
    (preset `code`); `levels`, a bias of each model's own, is ours and not part of them.
    """

    name = "embedllm"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        size, m = self.settings["size"], len(start)
        levels = self.settings["levels"]

        class EmbedLLMFactors(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.models = nn.Parameter(torch.randn(m, size) / size**0.5)
                self.project = nn.Linear(inputs, size)
                self.classes = nn.Linear(size, 2)
                # The classes' biases are shared by all models; each one's level is its own.
                level = torch.from_numpy(start.copy())
                self.level = nn.Parameter(level) if levels else None

            def forward(self, x: Any) -> Any:
                difference = self.classes.weight[1] - self.classes.weight[0]
                offset = self.classes.bias[1] - self.classes.bias[0]
                logits = (self.project(x) * difference) @ self.models.T + offset
                return logits if self.level is None else logits + self.level

        return EmbedLLMFactors()

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        import torch

        x = batch.x
        if self.settings["noise"] and batch.noise is not None:
            # Scaled as if added to each of the published encoder's 768 coordinates of a unit
            # vector would be too much for a short one: noise of this norm, whatever its size.
            noise = torch.randn(x.shape, generator=batch.noise)
            x = x + self.settings["noise"] * noise
        return logistic_loss(network(x), batch.y, batch.known)
