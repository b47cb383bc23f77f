"""ProbeDirichlet: weights of layers drawn from a Dirichlet in training, its mean in testing."""

from __future__ import annotations

from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.routers.base import Queries, listed
from routeyard.pipelines.routers.gradient import drawn
from routeyard.pipelines.routers.probes.probe import Probe

#: Least concentration of a layer: below it float32 draws lose their gradient.
LEAST = 1e-3


@listed
class ProbeDirichlet(Probe):
    """ProbeDirichlet (RouterXBench, section 4 and Algorithm 1).

    Concentrations e^{β₀}·softmax(θ), β₀ and θ begin at 1; α ~ Dirichlet while training, one
    draw per question with its pathwise gradient; α = concentration / Σ when asked (equations
    14 and 15). Algorithm 1 and the published code have the same concentrations for all
    questions, which is the default; the main text makes them depend on the question by a
    projection g_θ of the pooled states, without saying its form. `conditional` does that:
    e^{β₀}·softmax(θ + P·z̄(x)), z̄ the mean over layers and P zero at first, so that it begins as
    Algorithm 1.

    Algorithm 1, line 15, indexes w[:, l, :], a weight per coordinate; a draw has one per
    layer, and so has this. Its "uncertainty" is the entropy of the drawn weights in training
    and the logarithm of the total concentration in testing: two different things.
    `uncertainty` gives the second.
    """

    name = "probe-dirichlet"

    def weigher(self, layers: int, width: int) -> Any:
        import torch
        from torch import nn

        conditional, total = self.settings["conditional"], self.settings["total"]

        class Dirichlet(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.beta = nn.Parameter(torch.tensor(float(total)))
                self.theta = nn.Parameter(torch.ones(layers))
                self.project = nn.Linear(width, layers, bias=False) if conditional else None
                if self.project is not None:
                    nn.init.zeros_(self.project.weight)

            def concentration(self, x: Any) -> Any:
                logits = self.theta.expand(len(x), -1)
                if self.project is not None:
                    logits = logits + self.project(x.mean(dim=1))
                return self.beta.exp() * torch.softmax(logits, dim=1)

            def forward(self, x: Any, noise: Any = None) -> Any:
                found = self.concentration(x)
                if noise is None:
                    return found / found.sum(dim=1, keepdim=True)
                return dirichlet(found.clamp(min=LEAST), noise)

        return Dirichlet()

    def uncertainty(self, queries: Queries) -> Floats:
        """(n,) log of the total concentration: Algorithm 1, line 13."""
        import torch

        with torch.no_grad():
            x = torch.from_numpy(self.inputs(queries))
            found = self._network.weigh.concentration(x).sum(dim=1).log()
        return np.asarray(found.double().numpy())


def dirichlet(concentration: Any, noise: Any) -> Any:
    """(b, L) one draw per row, with its pathwise gradient; `noise` is a torch generator."""
    from torch.distributions import Dirichlet

    return drawn(lambda: Dirichlet(concentration, validate_args=False).rsample(), noise)
