"""Logistic regression: every model's log odds are a linear function of the embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.routers.base import listed
from routeyard.pipelines.routers.networks.trained import Trained, head


@listed
class Logistic(Trained):
    """Cross-entropy per model, L2 by weight decay, one linear layer for all models.

    Labels between 0 and 1 (means of samples) are taken as they are.
    """

    name = "logistic"

    def build(self, inputs: int, start: NDArray[np.float32]) -> Any:
        return head(inputs, start)
