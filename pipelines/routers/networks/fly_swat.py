"""Fly-swat or cannon: one meta-model with the model it is asked about as an input."""

from __future__ import annotations

from typing import Any

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.routers.base import listed
from routeyard.pipelines.routers.networks.trained import Trained


@listed
class FlySwat(Trained):
    """FORC (Šakota et al., "Fly-Swat or Cannon?", WSDM 2024).

    Task: P(correct) of a (question, model) pair from one meta-model; the model's
    name is a token before the question. Loss: cross-entropy. Rules of the paper:
    best predicted, cheapest above 0.5, greedy and integer program under a budget,
    which are `argmax`, `threshold` and `batch-budget` here (the greedy one drops
    questions once the money is spent, which counts as wrong).

    On a frozen encoder the token becomes a learnt vector per model that joins the
    question's projection before the hidden layer, so that all models share every
    weight but their own vector: that is what sets it apart from an MLP with a head
    per model. The plateau study lists this paper under the name TagRouter; both
    are here under their own names.
    """

    name = "fly-swat"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        width, size, m = self.settings["width"], self.settings["size"], len(start)

        class Meta(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.tokens = nn.Parameter(torch.randn(m, size) / size**0.5)
                self.question = nn.Linear(inputs, width)
                self.model = nn.Linear(size, width, bias=False)
                self.mixed, self.out = nn.Linear(width, width), nn.Linear(width, 1)
                self.level = nn.Linear(size, 1)
                with torch.no_grad():
                    self.out.weight.mul_(0.1)
                    # One coordinate of the token begins as the model's level.
                    self.tokens[:, 0] = torch.from_numpy(start.copy())
                    self.level.weight.zero_()
                    self.level.weight[0, 0] = 1.0
                    self.level.bias.zero_()

            def forward(self, x: Any) -> Any:
                joined = self.question(x)[:, None, :] + self.model(self.tokens)
                hidden = torch.relu(self.mixed(torch.relu(joined)))
                return self.out(hidden)[..., 0] + self.level(self.tokens)[:, 0]

        return Meta()
