"""Logistic regression: every model's log odds are a linear function of the embedding."""

from __future__ import annotations

from routeyard.pipelines.routers.base import listed
from routeyard.pipelines.routers.networks.trained import Trained


@listed
class Logistic(Trained):
    """Cross-entropy per model, L2 by weight decay, one linear layer for all models.

    Labels between 0 and 1 (means of samples) are taken as they are.
    """

    name = "logistic"
