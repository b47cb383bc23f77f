"""Zooter: a distribution over models, distilled from their scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Names
from routeyard.pipelines.routers.base import Examples, listed
from routeyard.pipelines.routers.networks.trained import (
    Trained,
    TrainingBatch,
    logistic_loss,
    masked_mean,
)


@listed
class Zooter(Trained):
    """Zooter (Lu et al., "Routing to the Expert", arXiv 2311.08692).

    Task: which models answer a question well. Target: the models' labels as a
    distribution, smoothed by the mean of the question's tag, s* = β·s + (1−β)·s_tag
    with β = 0.3; tags here are the release's tasks. Loss: KL(s* ‖ Z), that is
    cross-entropy with soft targets; the paper prints the arguments the other way
    round, KL(Z ‖ s), which its training cannot have meant for a fixed target with
    zeros. Rule: argmax.

    The plateau study's `zooter_lite` adds cross-entropy per model ("KL + BCE for
    distillation", arXiv 2606.07587, appendix E.4), which also makes the scores
    probabilities: that is the default here. With the preset `text` only the KL term
    and the softmax remain, and the target is the softmax of the labels. Questions
    that no model solves have no distribution and teach only the second term.
    """

    name = "zooter"

    def targets(self, train: Examples) -> dict[str, Array]:
        soft = not self.settings["both"]
        target, counts = distribution(
            train.labels, train.queries.tasks, self.settings["beta"], softmax=soft
        )
        return {"target": target.astype(np.float32), "counts": counts.astype(np.float32)}

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        logits = network(batch.x)
        total = divergence(logits, batch.more["target"], batch.more["counts"])
        if self.settings["both"]:
            total = total + logistic_loss(logits, batch.y, batch.known)
        return total

    def read(self, network: Any, x: Any) -> Any:
        import torch

        logits = network(x)
        return torch.sigmoid(logits) if self.settings["both"] else torch.softmax(logits, dim=1)


def distribution(
    labels: Floats, tags: Names, beta: float, *, softmax: bool
) -> tuple[Floats, Floats]:
    """(n, m) target distributions and (n,) 1 where a question has one.

    Args:
        softmax: softmax of the labels as in the paper; else labels divided by
            their sum, and a question without any right answer has no target.
    """
    known = ~np.isnan(labels)
    filled = np.where(known, labels, 0.0)
    shares = np.where(known, np.exp(filled), 0.0) if softmax else filled
    total = shares.sum(axis=1, keepdims=True)
    counts = (total[:, 0] > 0).astype(np.float64)
    own = shares / np.where(total > 0, total, 1.0)
    smooth = np.zeros_like(own)
    for tag in np.unique(tags):
        at = tags == tag
        n = counts[at].sum()
        smooth[at] = own[at].sum(axis=0) / n if n else 0.0
    return beta * own + (1 - beta) * smooth, counts


def divergence(logits: Any, target: Any, counts: Any) -> Any:
    """Mean KL(target ‖ softmax(logits)) over the questions that count.

    The target's entropy is constant and kept, so that a perfect fit is 0.
    """
    import torch

    log_p = torch.log_softmax(logits, dim=1)
    per_row = (torch.xlogy(target, target) - target * log_p).sum(dim=1)
    return masked_mean(per_row, counts)
