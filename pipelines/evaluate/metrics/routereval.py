"""V_R, V_B and E_p: RouterEval's three numbers beside the mean score."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.common.arrays import Floats, ratio
from routeyard.pipelines.common.memmap import by_rows
from routeyard.pipelines.evaluate.metrics.selection import at_choice
from routeyard.pipelines.evaluate.metrics.spec import MetricValue, Routed, metric


def entropies(scores: Floats) -> Floats:
    """(n,) −Σ p log₂ p of the softmaxed scores (n, m) of each question, in bits.

    >>> entropies(np.zeros((1, 4))).tolist()
    [2.0]
    """

    def work(part: Floats) -> Floats:
        shifted = np.exp(part - part.max(axis=1, keepdims=True))
        p = shifted / shifted.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.where(p > 0, p * np.log2(p), 0.0).sum(axis=1)) + 0.0

    return np.asarray(by_rows(work, scores))


def over(routed: Routed, model: int) -> MetricValue:
    """Mean score of the choices over that of one model, on the questions it has a label for."""
    alone = routed.data.own(model)
    met = ~np.isnan(alone)
    hit = np.where(met, at_choice(routed.data.test.labels, routed.choice), np.nan)
    if not met.any():
        return MetricValue(float("nan"), None, "the model it is compared with has no label")
    columns = np.stack([hit, alone], axis=1)
    below = float(columns[met, 1].mean())
    if not below > 0:
        return MetricValue(float("nan"), None, "the model it is compared with is never right")
    drawn = routed.data.draws.means(columns)
    replicates = ratio(drawn[:, 0], drawn[:, 1])
    return MetricValue(float(columns[met, 0].mean()) / below, replicates, n=int(met.sum()))


@metric
def v_r_metric(routed: Routed) -> MetricValue:
    """Accuracy over that of a reference model: the one named, else the best single on train."""
    reference = routed.shared.reference
    return over(routed, routed.data.single if reference is None else reference)


@metric
def v_b_metric(routed: Routed) -> MetricValue:
    """Accuracy over that of the best single model on test."""
    return over(routed, routed.data.best_on_test)


@metric
def e_p_metric(routed: Routed) -> MetricValue:
    """Mean entropy of the softmaxed scores; higher is more diverse."""
    return routed.mean(entropies(routed.scores))
