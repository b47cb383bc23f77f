"""MLP as printed: one network per model, of its own labels only."""

from __future__ import annotations

from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Floats
from routeyard.pipelines.routers.base import Examples, Queries, listed, model_means, usable
from routeyard.pipelines.routers.gradient import (
    network_arrays,
    probabilities,
    start_logits,
    train_network,
    with_arrays,
)
from routeyard.pipelines.routers.networks.mlp import layers


@listed
class MLPAsPrinted:
    """One network per model, of its own labels only (RouterBench+, appendix E).

    One hidden layer of 100, learning rate 1e-3 and at most 200 epochs, as in
    RouterBench's code, which stops after ten epochs without progress. Progress is
    measured on the validation questions where there are any, else on train; the best
    epoch is kept. The loss is the cross-entropy; the paper prints none, and the code's
    regression has the squared error.

    Args:
        width: units of the hidden layer; the code's other setting is two layers of 100.
        epochs: most epochs, 200 as printed.
        patience: epochs without progress after which training stops.
    """

    name = "mlp-as-printed"

    def __init__(self, width: int = 100, epochs: int = 200, patience: int = 10, seed: int = 0):
        self.width, self.epochs, self.patience, self.seed = width, epochs, patience, seed

    def fit(self, train: Examples) -> MLPAsPrinted:
        held = train.validation
        train = usable(train)
        vectors, means = train.queries.vectors(), model_means(train.labels)
        self._networks: list[Any] = []
        for k in range(len(train.model_ids)):
            known = ~np.isnan(train.labels[:, k])
            pairs = (vectors[known], train.labels[known][:, [k]])
            if held is not None and not np.isnan(held.labels[:, k]).all():
                pairs = (held.queries.vectors(), held.labels[:, [k]])
            if not known.any():
                self._networks.append(None)
                continue
            network, _ = train_network(
                layers(vectors.shape[1], self.width, start_logits(means[[k]])),
                vectors[known],
                train.labels[known][:, [k]],
                pairs,
                # One for all models, as in RouterBench's code: a model's place decides nothing.
                seed=self.seed,
                epochs=self.epochs,
                patience=self.patience,
                weight_decay=0.0,
            )
            self._networks.append(network)
        self._means = means
        return self

    def scores(self, queries: Queries) -> Floats:
        vectors = queries.vectors()
        columns = [
            np.full(len(vectors), self._means[k])
            if network is None
            else probabilities(network, vectors)[:, 0]
            for k, network in enumerate(self._networks)
        ]
        return np.stack(columns, axis=1)

    def arrays(self) -> dict[str, Array]:
        """The fitted networks, for `saved`; a model without labels has none."""
        found: dict[str, Array] = {"means": self._means}
        for k, network in enumerate(self._networks):
            if network is not None:
                found["inputs"] = np.array([network[0].in_features])
                found |= network_arrays(network, f"{k}.")
        return found

    def restore(self, arrays: Any) -> MLPAsPrinted:
        self._means = np.asarray(arrays["means"])
        self._networks = []
        for k in range(len(self._means)):
            network = None
            if any(name.startswith(f"{k}.") for name in arrays):
                start = np.zeros(1, dtype=np.float32)
                network = layers(int(arrays["inputs"][0]), self.width, start)()
                network = with_arrays(network, arrays, f"{k}.")
            self._networks.append(network)
        return self
