"""Logistic regression: every model's log odds are a linear function of the embedding."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.routers.base import Traits
from routeyard.pipelines.routers.networks.trained import Trained, head


class Logistic(Trained):
    """Cross-entropy per model, L2 by weight decay, one linear layer for all models.

    Labels between 0 and 1 (means of samples) are taken as they are.
    """

    name = "logistic"
    traits = Traits(loss="cross-entropy per model", cost="seconds")
    defaults: ClassVar[dict[str, Any]] = {"learning_rate": 1e-2, "epochs": 20}
    architectures = tuple({"weight_decay": decay} for decay in (0.0, 1e-2, 1e-1, 0.5))

    def build(self, inputs: int, start: NDArray[np.float32]) -> Any:
        return head(inputs, start)
