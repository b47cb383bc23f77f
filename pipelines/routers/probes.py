"""Routers that read a model's hidden states of the question; read `Probe` first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from routeyard.pipelines.common.arrays import Floats, Vectors
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.listed import listed
from routeyard.pipelines.routers.training import (
    Trained,
    TrainingBatch,
    drawn,
    dropped,
    head,
    logistic_loss,
)
from routeyard.schemas.errors import BadInput

# EmbeddingMLP: the probes' counterpart that reads an encoder's vector of the question.


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


# Probes: hidden states of all layers, weighed and summed, then a linear head.

#: Of a spread in which nothing varies.
STILL = 1e-6


class Probe(Trained):
    """z = Σ_l α_l·z^(l) over layers, z^(l) the mean of a layer's states over the prompt's tokens
    (RouterXBench, equations 12 and 13), then a head per model. Subclasses say what α is.

    Loss: cross-entropy of each model's label, masked where unknown. The paper has one small
    model, its own states and one logit: `heads="own"` learns that column alone and gives the
    other models their train means, so that α is fitted to one model as printed. Published:
    Adam 1e-4, 50 epochs, batch 32, states as they are (presets). States of different
    layers differ in size by orders of magnitude, so by default every coordinate is centred and
    scaled on the train questions (`scaled`). `width`: neurons of a hidden layer before the
    head, 0 for none (section 6 finds that it does not help).
    """

    defaults: ClassVar[Mapping[str, Any]] = {"width": 0, "scaled": True, "heads": "all"}
    architectures: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {},
        {"weight_decay": 0.1},
        {"width": 64},
        {"learning_rate": 1e-3},
    )

    def fit(self, train: Examples) -> Self:
        states = train.queries.states()
        flat = states.shape[1:]
        self._centre, self._spread = np.zeros(flat, np.float32), np.ones(flat, np.float32)
        if self.settings["scaled"]:
            self._centre, spread = states.mean(axis=0), states.std(axis=0)
            self._spread = np.where(spread > STILL, spread, 1).astype(np.float32)
        self._own = -1
        if self.settings["heads"] == "own":
            whose = train.queries.hidden_of
            if whose not in train.model_ids:
                raise BadInput(
                    f"the hidden states are of {whose!r}, which is not in the pool",
                    next_step=f"{self.name} with heads='all', or name a model of the pool with "
                    "--model-id when making the states",
                )
            self._own = train.model_ids.index(whose)
        return super().fit(train)

    def inputs(self, queries: Queries) -> Vectors:
        return (queries.states() - self._centre) / self._spread

    def build(self, inputs: int, start: Vectors) -> Any:
        from torch import nn

        layers, width = self._shape[0], self.settings["width"]
        make, own = self.weigher, head(width or inputs, start)

        class Network(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.weigh = make(layers, inputs)
                self.middle = (
                    nn.Sequential(nn.Linear(inputs, width), nn.ReLU()) if width else nn.Identity()
                )
                self.head = own

            def forward(self, x: Any, noise: Any = None) -> Any:
                pooled = (self.weigh(x, noise)[:, :, None] * x).sum(dim=1)
                return self.head(self.middle(pooled))

        return Network()

    @abstractmethod
    def weigher(self, layers: int, width: int) -> Any:
        """A module: states (b, L, d), a generator or None → weights of layers (b, L), sum 1."""

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        logits, y, known = network(batch.x, batch.noise), batch.y, batch.known
        if self._own >= 0:
            own = slice(self._own, self._own + 1)
            logits, y, known = logits[:, own], y[:, own], known[:, own]
        return logistic_loss(logits, y, known)

    def read(self, network: Any, x: Any) -> Any:
        import torch

        levels = torch.sigmoid(network(x))
        if self._own >= 0:
            level = torch.sigmoid(torch.from_numpy(self._start)).to(levels.dtype)
            others = torch.arange(levels.shape[1]) != self._own
            levels = torch.where(others, level, levels)
        return levels

    def layer_weights(self, queries: Queries) -> Floats:
        """(n, L) weights of the layers when nothing is drawn: what figure 6 shows."""
        import torch

        with torch.no_grad():
            weights = self._network.weigh(torch.from_numpy(self.inputs(queries)), None)
        return np.asarray(weights.double().numpy())


def fixed(weights: Vectors) -> Any:
    """A weigher that has the same weights (L,) for every question."""
    import torch
    from torch import nn

    class Fixed(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
        def forward(self, x: Any, noise: Any = None) -> Any:
            return torch.from_numpy(weights).to(x.dtype).expand(len(x), -1)

    return Fixed()


# ProbeDirichlet: weights of layers drawn from a Dirichlet in training, its mean in testing.

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
    layer, and so has this.
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
                concentration = self.concentration(x)
                if noise is None:
                    return concentration / concentration.sum(dim=1, keepdim=True)
                return dirichlet(concentration.clamp(min=LEAST), noise)

        return Dirichlet()


def dirichlet(concentration: Any, noise: Any) -> Any:
    """(b, L) one draw per row, with its pathwise gradient; `noise` is a torch generator."""
    from torch.distributions import Dirichlet

    return drawn(lambda: Dirichlet(concentration, validate_args=False).rsample(), noise)


# Probes without chance: the mean of all layers, the last one, learned softmax weights.


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
