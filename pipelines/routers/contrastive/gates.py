"""Gates over the pool that CSCR is compared with: Soft-MoE and the parametric softmax."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from routeyard.pipelines.arrays import Array, Vectors
from routeyard.pipelines.routers.base import Examples, listed
from routeyard.pipelines.routers.contrastive.bank import bank_of
from routeyard.pipelines.routers.contrastive.losses import info_nce
from routeyard.pipelines.routers.contrastive.space import DescriptorRouter
from routeyard.pipelines.routers.networks.trained import (
    Trained,
    TrainingBatch,
    head,
    logistic_loss,
)


@listed
class SoftMoE(DescriptorRouter):
    """Soft-MoE of CSCR's baselines (section 4.1): softmax((cos − λ·cost)/τ), argmax.

    The paper prints no loss. Here the gate's expected label is maximised, which is what
    makes the gate soft: −mean over questions of Σ_m g_m·y_m over known labels, g the
    softmax over the models whose label is known. Dividing by τ changes no argmax, so the
    score is the cosine.
    """

    name = "soft-moe"

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        known = batch.known > 0
        return -gate_value(
            self.read(network, batch.x), batch.y, known, self.settings["temperature"]
        )


def gate_value(similarity: Any, y: Any, known: Any, temperature: float) -> Any:
    """Mean over rows with a known label of Σ_m softmax(s/τ)_m·y_m over known labels."""
    import torch

    some = known.any(dim=1)
    masked = torch.where(known[some], similarity[some] / temperature, -torch.inf)
    weight = torch.softmax(masked, dim=1)
    return (weight * y[some]).sum(dim=1).mean()


@listed
class Parametric(Trained):
    """Parametric softmax gate of CSCR's baselines (section 4.1): one head per model.

    Task: softmax over models of a linear map of the embedding. Loss: −log of the mass on
    models that are right (equation 6 with a head for a descriptor). It has no place for a
    new model: the paper leaves it out of Table 2 for that.

    The published code has something else under this name, the logit W·d_m + b of a
    descriptor, which is the same for all questions: preset `code`, trained by
    cross-entropy on the labels.
    """

    name = "parametric"

    def fit(self, train: Examples) -> Self:
        self._bank = np.zeros((len(train.model_ids), 1), np.float32)
        if self.settings["of"] == "descriptors":
            self._bank = bank_of(train.descriptors, train.model_ids, self.settings["descriptor"])
        return super().fit(train)

    def build(self, inputs: int, start: Vectors) -> Any:
        from torch import nn

        if self.settings["of"] == "descriptors":
            return nn.Linear(self._bank.shape[1], 1)
        return head(inputs, start)

    def logits(self, network: Any, x: Any) -> Any:
        """(b, m) logits of the gate."""
        import torch

        if self.settings["of"] == "descriptors":
            return network(torch.from_numpy(self._bank)).T.expand(len(x), -1)
        return network(x)

    def read(self, network: Any, x: Any) -> Any:
        import torch

        return torch.softmax(self.logits(network, x), dim=1)

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        logits, known = self.logits(network, batch.x), batch.known > 0
        if self.settings["of"] == "descriptors":
            return logistic_loss(logits, batch.y, batch.known)
        return info_nce(logits, known & (batch.y >= self.settings["right"]), known, 1.0)

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "bank": self._bank}

    def restore(self, arrays: Any) -> Self:
        self._bank = arrays["bank"]
        return super().restore(arrays)
