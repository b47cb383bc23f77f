"""Probes without chance: the mean of all layers, the last one, learned softmax weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from routeyard.pipelines.routers.base import listed
from routeyard.pipelines.routers.probes.probe import Probe, fixed


@listed
class ProbeMean(Probe):
    """All layers weigh the same (RouterXBench, section 4 and appendix C)."""

    name = "probe-mean"

    def weigher(self, layers: int, width: int) -> Any:
        return fixed(np.full(layers, 1 / layers, dtype=np.float32))


@listed
class ProbeFinal(Probe):
    """The last layer alone (RouterXBench, Table 3)."""

    name = "probe-final"

    def weigher(self, layers: int, width: int) -> Any:
        return fixed(np.eye(layers, dtype=np.float32)[-1])


@listed
class ProbeSoftmax(Probe):
    """Learned weights, the same for every question: softmax(θ) (Algorithm 1, lines 2 to 5)."""

    name = "probe-softmax"

    def weigher(self, layers: int, width: int) -> Any:
        import torch
        from torch import nn

        class Softmax(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.theta = nn.Parameter(torch.ones(layers))

            def forward(self, x: Any, noise: Any = None) -> Any:
                return torch.softmax(self.theta, dim=0).expand(len(x), -1)

        return Softmax()
