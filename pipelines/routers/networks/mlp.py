"""MLP: a shared hidden layer and one head per model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.routers.base import Examples, Floats, Queries, Traits, model_means, usable
from pipelines.routers.gradient import probabilities, start_logits, train_network


class MLP:
    """Probability that each model is right, from the question's embedding.

    RouterBench (arXiv 2403.12031) trains a network per model; a
    shared hidden layer with one head per model learns the same in one pass.
    Width and weight decay are chosen on the validation questions by loss.
    """

    name = "mlp"
    traits = Traits(
        paper="RouterBench, arXiv 2403.12031",
        loss="cross-entropy per model",
        selection="argmax willingness-to-pay · p − price",
        cost="seconds",
    )
    architectures = tuple(
        {"widths": (width,), "decays": (decay,)} for width in (64, 256) for decay in (1e-2, 1e-1)
    )

    def __init__(
        self,
        widths: tuple[int, ...] = (64, 256),
        decays: tuple[float, ...] = (1e-2, 1e-1),
        seed: int = 0,
    ):
        self.widths, self.decays, self.seed = widths, decays, seed

    def fit(self, train: Examples) -> MLP:
        train = usable(train)
        vectors = train.queries.vectors()
        held = train.validation
        choices = [(width, decay) for width in self.widths for decay in self.decays]
        if held is None:
            choices = choices[:1]
        pairs = None if held is None else (held.queries.vectors(), held.labels)
        best = float("inf")
        for width, decay in choices:
            network, loss = train_network(
                layers(vectors.shape[1], width, start_logits(model_means(train.labels))),
                vectors,
                train.labels,
                pairs,
                seed=self.seed,
                weight_decay=decay,
                learning_rate=3e-3,
            )
            if loss < best:
                best, self.width, self.decay, self._network = loss, width, decay, network
        return self

    def scores(self, queries: Queries) -> Floats:
        return probabilities(self._network, queries.vectors())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The fitted network, for `saved`."""
        state = {f"network.{k}": v.numpy() for k, v in self._network.state_dict().items()}
        return {**state, "shape": np.array([self._network[0].in_features, self.width])}

    def restore(self, arrays: Any) -> MLP:
        import torch

        inputs, self.width = (int(v) for v in arrays["shape"])
        state = {k[8:]: torch.from_numpy(v) for k, v in arrays.items() if k[:8] == "network."}
        start = np.zeros(len(arrays["network.2.bias"]), dtype=np.float32)
        self._network = layers(inputs, self.width, start)()
        self._network.load_state_dict(state)
        return self


def layers(inputs: int, width: int, start: NDArray[np.float32]) -> Any:
    """Builder of a network from embeddings (n, d) to logits (n, len(start))."""

    def build() -> Any:
        import torch
        from torch import nn

        heads = nn.Linear(width, len(start))
        with torch.no_grad():
            heads.bias.copy_(torch.from_numpy(start))
        return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), heads)

    return build
