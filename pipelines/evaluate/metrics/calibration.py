"""BCE, Brier score and ECE: whether predicted scores are the chances they claim to be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from routeyard.pipelines.common.arrays import Floats, ratio
from routeyard.pipelines.common.memmap import by_rows
from routeyard.pipelines.evaluate.metrics.spec import MetricValue, Routed, metric

#: Predictions are kept this far from 0 and 1 in BCE, so that one certain error is not infinite.
CLIP = 1e-7

#: Bins of equal width of ECE.
BINS = 15

_NOT = "the scores are no probabilities"


def bce_cells(p: Floats, y: Floats) -> Floats:
    """Cross-entropy −y·ln p − (1−y)·ln(1−p) of each cell, in nats; NaN without a label.

    >>> round(float(bce_cells(np.array(0.5), np.array(1.0))), 6)
    0.693147
    """
    q = np.clip(p, CLIP, 1 - CLIP)
    return np.asarray(-(y * np.log(q) + (1 - y) * np.log(1 - q)))


def brier_cells(p: Floats, y: Floats) -> Floats:
    """(p − y)² of each cell; NaN without a label.

    >>> float(brier_cells(np.array(0.5), np.array(1.0)))
    0.25
    """
    return np.asarray((p - y) ** 2)


def bin_sums(p: Floats, y: Floats) -> Floats:
    """(n, 2·BINS) per question: Σ(p − y) and the number of labels in every bin of p."""

    def work(p: Floats, y: Floats) -> Floats:
        known = ~np.isnan(y)
        where = np.clip((p * BINS).astype(np.int64), 0, BINS - 1)
        out = np.zeros((len(p), 2 * BINS))
        rows = np.broadcast_to(np.arange(len(p))[:, None], p.shape)
        np.add.at(out, (rows[known], where[known]), (p - y)[known])
        np.add.at(out, (rows[known], BINS + where[known]), 1.0)
        return out

    return np.asarray(by_rows(work, p, y))


def ece(sums: Floats) -> Floats:
    """(...,) Σ_b n_b/n · |mean p − mean y| from the sums of `bin_sums` (..., 2·BINS).

    >>> round(float(ece(bin_sums(np.array([[0.9, 0.2]]), np.array([[1.0, 0.0]])).sum(axis=0))), 6)
    0.15
    """
    n = sums[..., BINS:].sum(axis=-1)
    return ratio(np.abs(sums[..., :BINS]).sum(axis=-1), n)


def _mean_of_cells(routed: Routed, cells: Callable[[Floats, Floats], Floats]) -> MetricValue:
    if routed.no_chances:
        return MetricValue(float("nan"), None, _NOT)

    def work(p: Floats, y: Floats) -> Floats:
        found = cells(p, y)
        known = ~np.isnan(found)
        return np.stack([np.where(known, found, 0.0).sum(axis=1), known.sum(axis=1)], axis=1)

    columns = np.asarray(by_rows(work, routed.scores, routed.data.test.labels))
    total, drawn = columns.sum(axis=0), routed.data.draws.sums(columns)
    return MetricValue(float(total[0] / total[1]), drawn[:, 0] / drawn[:, 1])


@metric
def bce_metric(routed: Routed) -> MetricValue:
    """Mean cross-entropy of the predicted scores against the labels, over all labels."""
    return _mean_of_cells(routed, bce_cells)


@metric
def brier_metric(routed: Routed) -> MetricValue:
    """Mean squared difference between predicted score and label, over all labels."""
    return _mean_of_cells(routed, brier_cells)


@metric
def ece_metric(routed: Routed) -> MetricValue:
    """Mean over bins, by size, of |mean predicted score − mean label|."""
    if routed.no_chances:
        return MetricValue(float("nan"), None, _NOT)
    sums = bin_sums(routed.scores, routed.data.test.labels)
    return MetricValue(float(ece(sums.sum(axis=0))), ece(routed.data.draws.sums(sums)))
