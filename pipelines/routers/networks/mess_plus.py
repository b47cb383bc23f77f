"""MESS+: the correctness predictor of a service-level router."""

from __future__ import annotations

from typing import Any

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.routers.base import listed
from routeyard.pipelines.routers.networks.trained import (
    Trained,
    TrainingBatch,
    dropped,
    head,
    logistic_loss,
)


@listed
class MessPlus(Trained):
    """MESS+ (Woisetschläger et al., arXiv 2505.19947).

    Task: answer a stream of questions at least cost while a share α is answered
    well. Predictor: Linear(d, h)-LayerNorm-ReLU-Linear(h, m) on the frozen
    encoder; loss: cross-entropy per model. Rule of the paper: explore with
    probability min(1, c/t^(1/4)), else choose argmin V·E + Q·(α − p̂) with a
    virtual queue Q: `mess_stream`, `routeyard zoo stream`.

    The study of the plateau takes the predictor and its own rule, and so does this
    class. Published code trains by SGD (rate 0.0606, momentum 0.9) one row at a
    time with dropout 0.1; AdamW in batches reaches the same optimum of the same
    loss in a fraction of the time. The published code overwrites its energy
    estimate with the last value where the paper has a running mean. The router
    learns in an order, so its seeds are orders: the rows come shuffled by the
    seed, and five are reported.
    """

    name = "mess-plus"

    def build(self, inputs: int, start: Vectors) -> Any:
        from torch import nn

        width = self.settings["width"]
        return nn.Sequential(
            nn.Linear(inputs, width), nn.LayerNorm(width), nn.ReLU(), head(width, start)
        )

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        share = self.settings["dropout"]
        hidden = network[:3](dropped(batch.x, share, batch.noise))
        logits = network[3](dropped(hidden, share, batch.noise))
        return logistic_loss(logits, batch.y, batch.known)
