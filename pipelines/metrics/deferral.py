"""Deferral curves: accuracy against cost, and the numbers read off them.

A curve is a sequence of k points (mean cost, mean accuracy) in the order of
the sweep, cheapest setting first. All functions take leading axes, so the
curves of all resamples are handled at once: cost and accuracy of shape
(..., k).

Where the realised cost falls from one setting to the next, the earlier,
dearer point holds: cost is made non-decreasing by its running maximum, so a
curve is a function of cost and never turns back.

Jitkrittum et al., Universal Model Routing for Efficient LLM Inference
(arXiv 2502.08773), its evaluation: deferral curve, area, peak
accuracy and quality-neutral cost.
"""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.matrix.memmap import allocate, blocks
from routeyard.pipelines.metrics.selection import Choices


def monotone(cost: Floats) -> Floats:
    """Running maximum along the sweep."""
    return np.maximum.accumulate(cost, axis=-1)


def audc(
    cost: Floats, accuracy: Floats, low: float, high: float, cheapest: Floats | float
) -> Floats:
    """Area under the deferral curve, in units of accuracy: 1 is always right for any money.

    Cost is scaled over [low, high], the mean test costs of the cheapest and the
    dearest single model, which stay the same for every router and resample;
    then the trapezoid rule. Ends: before its first point a curve has the
    accuracy of the cheapest single model (a router that cannot be had for that
    money earns nothing there), past its last point it keeps its last accuracy.

    Args:
        cheapest: accuracy of the cheapest single model, (...,) or a number.

    Returns:
        (...,) areas; NaN when low = high, where no trade-off exists.

    >>> round(float(audc(np.array([1.0, 3.0]), np.array([0.4, 0.8]), 1.0, 5.0, 0.4)), 6)
    0.7
    """
    if not high > low:
        return np.full(cost.shape[:-1], np.nan)
    x = monotone(cost)
    x -= low
    x /= high - low
    np.clip(x, 0.0, 1.0, out=x)
    width = x[..., 1:] - x[..., :-1]
    inner = 0.5 * (
        np.einsum("...k,...k->...", width, accuracy[..., 1:])
        + np.einsum("...k,...k->...", width, accuracy[..., :-1])
    )
    # A curve that starts at the cheapest cost needs nothing of the cheapest model.
    left = np.where(x[..., 0] > 0, x[..., 0] * cheapest, 0.0)
    right = (1 - x[..., -1]) * accuracy[..., -1]
    return np.asarray(inner + left + right)


def peak_accuracy(accuracy: Floats) -> Floats:
    """(...,) highest accuracy anywhere on the curve.

    >>> float(peak_accuracy(np.array([0.4, 0.9, 0.8])))
    0.9
    """
    return np.asarray(accuracy.max(axis=-1))


def qnc(
    cost: Floats, accuracy: Floats, target: Floats | float, target_cost: Floats | float
) -> Floats:
    """Quality-neutral cost: least cost that matches the best single model, over that model's.

    Between two points the curve is linear, as mixing the two settings at random
    makes it.

    Args:
        target: accuracy of the most accurate single model, (...,) or a number.
        target_cost: its mean cost.

    Returns:
        (...,) NaN where the curve never matches it: null, not infinity.

    >>> float(qnc(np.array([1.0, 2.0, 4.0]), np.array([0.4, 0.6, 0.9]), 0.75, 6.0))
    0.5
    """
    x, goal = monotone(cost), np.asarray(target)[..., None]
    # Sums of the same labels in another order must not decide a tie.
    reached = accuracy >= goal - 1e-12
    first = np.argmax(reached, axis=-1)[..., None]
    before = np.maximum(first - 1, 0)
    x1, x0 = np.take_along_axis(x, first, -1), np.take_along_axis(x, before, -1)
    y1, y0 = np.take_along_axis(accuracy, first, -1), np.take_along_axis(accuracy, before, -1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(y1 > y0, np.clip((goal - y0) / (y1 - y0), 0.0, 1.0), 1.0)
        at = (x0 + share * (x1 - x0))[..., 0]
        found = np.where(reached.any(axis=-1), at / target_cost, np.nan)
    return np.asarray(found)


def curve_columns(values: Floats, choice: Choices, out: Floats | None = None) -> Floats:
    """(n, k) value of each query's choice at every setting; rows are queries."""
    out = allocate(choice.shape) if out is None else out
    for rows in blocks(len(choice)):
        out[rows] = np.take_along_axis(values[rows], choice[rows].astype(np.int64), axis=1)
    return out
