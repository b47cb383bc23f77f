"""What the routers share that map questions into the space of the models' descriptors."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Ints, Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.routers.base import Examples, Queries, mean_cost
from routeyard.pipelines.routers.contrastive.bank import OUTSIDE, bank_of, nearest_models, unit
from routeyard.pipelines.routers.networks.trained import Trained, TrainingBatch


@dataclass(frozen=True)
class Scale:
    """Range of the train pool's mean costs, by which costs are brought to [0, 1]."""

    low: float
    high: float

    def of(self, cost: Floats) -> Floats:
        spread = self.high - self.low
        return np.asarray((cost - self.low) / spread if spread > 0 else np.zeros_like(cost))


class DescriptorRouter(Trained):
    """Questions → two linear layers → unit vectors; scores are cosines with descriptors.

    What is learnt is the map of questions alone. A model is its descriptor and its cost,
    so one that was never seen in training joins by `with_models`, and a model without a
    single label can be in the pool from the start.
    """

    defaults: ClassVar[Mapping[str, Any]] = {
        "k": 4, "width": 1.0, "descriptor": None, "right": 0.5,
        "learning_rate": 2e-3, "epochs": 20,
    }  # fmt: skip

    def fit(self, train: Examples) -> Self:
        self._bank = bank_of(train.descriptors, train.model_ids, self.settings["descriptor"])
        cost = mean_cost(train)
        raw = np.zeros(len(train.model_ids)) if cost is None else cost
        self._scale = Scale(float(raw.min()), float(raw.max()))
        self._cost = self._scale.of(raw)
        super().fit(train)
        if cost is None and "costs" in self.traits.needs:
            self.not_as_published += ("no cost is known of every model: none is weighed",)
        return self

    def build(self, inputs: int, start: Vectors) -> Any:
        from torch import nn

        middle = max(1, round(inputs * self.settings["width"]))
        return nn.Sequential(
            nn.Linear(inputs, middle, bias=False),
            nn.ReLU(),
            nn.Linear(middle, self._bank.shape[1], bias=False),
        )

    def read(self, network: Any, x: Any) -> Any:
        import torch
        from torch.nn.functional import normalize

        bank = torch.from_numpy(self._bank).to(x.dtype)
        return normalize(network(x), dim=1) @ bank.T

    def positives(self, batch: TrainingBatch) -> tuple[Any, Any]:
        """(b, m) boolean: models that are right, models whose label is known.

        An unknown label makes a model neither a positive nor a negative.
        """
        known = batch.known > 0
        return known & (batch.y >= self.settings["right"]), known

    def placed(self, queries: Queries) -> Vectors:
        """(n, D) unit vectors of questions in the space of the descriptors."""
        import torch

        from routeyard.pipelines.routers.gradient import one_thread

        with one_thread(), torch.no_grad():
            found = self._network(torch.from_numpy(np.ascontiguousarray(self.inputs(queries))))
        return unit(found.numpy())

    def scores(self, queries: Queries) -> Floats:
        at, near = nearest_models(self.placed(queries), self._bank, self.settings["k"])
        out = np.full((len(at), len(self._bank)), OUTSIDE)
        np.put_along_axis(out, at, near, axis=1)
        return out

    def with_models(self, descriptors: Vectors, cost: Floats) -> Self:
        """The same router with k more models behind the others; nothing is trained.

        Args:
            descriptors: (k, D) of the kind it was fitted on. cost: (k,) in the unit of
                the train costs.

        Raises:
            BadInput: the descriptors have another length.
        """
        new = unit(np.asarray(descriptors, np.float32))
        if new.ndim != 2 or new.shape[1] != self._bank.shape[1]:
            raise BadInput(
                f"descriptors of shape {new.shape} do not fit those of the pool, "
                f"which have {self._bank.shape[1]} numbers",
                next_step="make them with the same probes, tokens and kind",
            )
        scaled = self._scale.of(np.asarray(cost, np.float64))
        return self._with(np.concatenate([self._bank, new]), np.concatenate([self._cost, scaled]))

    def among(self, at: Ints) -> Self:
        """The same router over some of its models, in this order."""
        return self._with(self._bank[at], self._cost[at])

    def _with(self, bank: Vectors, cost: Floats) -> Self:
        other = copy.copy(self)
        other._bank, other._cost = bank, cost
        other._shape = (*self._shape[:-1], len(bank))
        return other

    def arrays(self) -> dict[str, Array]:
        scale = np.array([self._scale.low, self._scale.high])
        return {**super().arrays(), "bank": self._bank, "cost": self._cost, "scale": scale}

    def restore(self, arrays: Mapping[str, Array]) -> Self:
        self._bank, self._cost = arrays["bank"], arrays["cost"]
        self._scale = Scale(*(float(v) for v in arrays["scale"]))
        return super().restore(arrays)
