"""Probes: hidden states of all layers, weighed and summed, then a linear head."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.routers.base import Examples, Queries
from routeyard.pipelines.routers.networks.trained import (
    Trained,
    TrainingBatch,
    head,
    logistic_loss,
)

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

        found = torch.sigmoid(network(x))
        if self._own >= 0:
            level = torch.sigmoid(torch.from_numpy(self._start)).to(found.dtype)
            others = torch.arange(found.shape[1]) != self._own
            found = torch.where(others, level, found)
        return found

    def layer_weights(self, queries: Queries) -> Floats:
        """(n, L) weights of the layers when nothing is drawn: what figure 6 shows."""
        import torch

        with torch.no_grad():
            found = self._network.weigh(torch.from_numpy(self.inputs(queries)), None)
        return np.asarray(found.double().numpy())

    def arrays(self) -> dict[str, Array]:
        own = np.array([self._own])
        extra = {"centre": self._centre, "spread": self._spread, "own": own}
        return {**super().arrays(), **extra}

    def restore(self, arrays: Mapping[str, Array]) -> Self:
        self._centre, self._spread = arrays["centre"], arrays["spread"]
        self._own = int(arrays["own"][0])
        return super().restore(arrays)


def fixed(weights: Vectors) -> Any:
    """A weigher that has the same weights (L,) for every question."""
    import torch
    from torch import nn

    class Fixed(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
        def forward(self, x: Any, noise: Any = None) -> Any:
            return torch.from_numpy(weights).to(x.dtype).expand(len(x), -1)

    return Fixed()
