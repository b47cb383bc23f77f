"""HybridLLM: is this model's answer as good as the reference model's?"""

from __future__ import annotations

from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Vectors
from routeyard.pipelines.routers.base import Examples, listed, strongest
from routeyard.pipelines.routers.networks.trained import Trained, TrainingBatch, logistic_loss


@listed
class HybridLLM(Trained):
    """Hybrid LLM (Ding et al., arXiv 2404.14618), and its form for many models.

    Task: the chance that a candidate answers as well as the reference, the most
    accurate model on train. Labels: `det` 1[q_m ≥ q_ref]; `prob` the same over
    samples of fractional labels; `trans` 1[q_m ≥ q_ref − t] with the t that spreads
    the labels most, max over t of mean |y_i − y_j|. Loss: cross-entropy. Rule: the
    small model where p ≥ threshold, which is the rule `threshold` of a pair.

    With many models the published code trains one output per candidate. Read by
    argmax it always picks the reference, whose label is 1 on every question: the
    plateau study's row for it is far below all others, a single model
    (arXiv 2606.07587, Table 1). That are its presets. By default a tie counts one
    half, so that the score is ½ + E[q_m − q_ref]/2 and its argmax is the better
    model.
    """

    name = "hybrid-llm"

    def build(self, inputs: int, start: Vectors) -> Any:
        level = 1 / (1 + np.exp(-start.astype(np.float64)))
        level = np.clip(0.5 + (level - level.max()) / 2, 0.01, 0.99)
        begin = np.log(level / (1 - level)).astype(np.float32)
        return super().build(inputs, begin)

    def targets(self, train: Examples) -> dict[str, Array]:
        reference = strongest(train)
        target = as_good(train.labels, reference, self.settings["labels"])
        known = ~np.isnan(target)
        return {
            "target": np.where(known, target, 0.0).astype(np.float32),
            "counts": known.astype(np.float32),
        }

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        return logistic_loss(network(batch.x), batch.more["target"], batch.more["counts"])


def as_good(labels: Floats, reference: int, form: str) -> Floats:
    """(n, m) how surely each answer is as good as the reference's; NaN where either is unknown.

    >>> as_good(np.array([[1.0, 0.0], [1.0, 1.0]]), 0, "det").tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    >>> as_good(np.array([[1.0, 0.0], [1.0, 1.0]]), 0, "half").tolist()
    [[0.5, 0.0], [0.5, 0.5]]
    """
    gap = labels - labels[:, [reference]]
    if form == "half":
        return np.asarray((np.sign(gap) + 1) / 2)
    slack = 0.0 if form == "det" else widest(gap)
    # An answer a little behind counts half a tie, so that `trans` still knows the better one.
    good = np.where(np.isnan(gap), np.nan, (gap >= -slack).astype(np.float64))
    return good if form == "det" else np.asarray((good + (np.sign(gap) + 1) / 2) / 2)


def widest(gap: Floats) -> float:
    """The slack t that makes the labels 1[gap ≥ −t] differ most, 2·p·(1 − p) at its largest."""
    known = gap[~np.isnan(gap)]
    choices = np.unique(np.concatenate([[0.0], -known[known < 0]]))[:-1]
    if not len(choices):
        return 0.0
    spread = [float(np.mean(known >= -t) * np.mean(known < -t)) for t in choices[:200]]
    return float(choices[int(np.argmax(spread))])
