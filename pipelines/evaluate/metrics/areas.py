"""Metrics of a router's curve over cost: AIQ, nAUC, savings, distance to the Pareto front."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import Floats, allocate, blocks, by_rows, mean_costs, ratio
from routeyard.pipelines.evaluate.metrics.selection import (
    Choice,
    Choices,
    Order,
    at_choice,
    best,
    mix_frontier,
)
from routeyard.pipelines.evaluate.metrics.spec import EvaluationData, MetricValue, Swept, metric

# Deferral curves: accuracy against cost, and the numbers read off them.
#
# A curve is a sequence of k points (mean cost, mean accuracy) in the order of
# the sweep, cheapest setting first. All functions take leading axes, so the
# curves of all resamples are handled at once: cost and accuracy of shape
# (..., k).
#
# Where the realised cost falls from one setting to the next, the earlier,
# dearer point holds: cost is made non-decreasing by its running maximum, so a
# curve is a function of cost and never turns back.
#
# Jitkrittum et al., Universal Model Routing for Efficient LLM Inference
# (arXiv 2502.08773), its evaluation: deferral curve, area, peak
# accuracy and quality-neutral cost.


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
        values = np.where(reached.any(axis=-1), at / target_cost, np.nan)
    return np.asarray(values)


def curve_columns(values: Floats, choice: Choices, out: Floats | None = None) -> Floats:
    """(n, k) value of each query's choice at every setting; rows are queries."""
    out = allocate(choice.shape) if out is None else out
    for rows in blocks(len(choice)):
        out[rows] = np.take_along_axis(values[rows], choice[rows].astype(np.int64), axis=1)
    return out


# PerfGain, CostSave, ParetoDist: a sweep against the best single model and other routers.

#: Sums of the same labels in another order must not decide a tie.
_TIE = 1e-12


def perf_gain(accuracy: Floats, best: Floats | float) -> Floats:
    """(...,) best over settings (..., k) of A/A_best − 1; NaN where A_best is 0.

    >>> round(float(perf_gain(np.array([0.4, 0.9]), 0.75)), 6)
    0.2
    """
    return ratio(accuracy.max(axis=-1), best) - 1


def cost_save(
    cost: Floats, accuracy: Floats, best: Floats | float, best_cost: Floats | float
) -> Floats:
    """(...,) greatest 1 − c/c_best over settings at least as accurate as the best single model.

    NaN where no setting is; negative where only dearer ones are.

    >>> float(cost_save(np.array([1.0, 2.0, 5.0]), np.array([0.4, 0.8, 0.9]), 0.8, 4.0))
    0.5
    """
    goal = np.asarray(best)[..., None]
    cheapest = np.where(accuracy >= goal - _TIE, cost, np.inf).min(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        result = 1 - cheapest / best_cost
    return np.where(np.isfinite(result), result, np.nan)


def pareto_points(cost: Floats, accuracy: Floats) -> tuple[Floats, Floats]:
    """Points that no other point equals or beats at the same cost or less, cheapest first.

    >>> pareto_points(np.array([2.0, 1.0, 3.0]), np.array([0.5, 0.5, 0.9]))
    (array([1., 3.]), array([0.5, 0.9]))
    """
    order = np.lexsort((-accuracy, cost))
    best = np.maximum.accumulate(accuracy[order])
    keep = np.concatenate([[True], best[1:] > best[:-1]])
    return cost[order][keep], accuracy[order][keep]


def pareto_dist(
    cost: Floats, accuracy: Floats, frontier: tuple[Floats, Floats], low: float, high: float
) -> float:
    """Mean distance of a router's settings to the nearest point of the joint frontier.

    Euclidean in (cost, accuracy), cost scaled so that the cheapest single
    model is at 0 and the dearest at 1.

    >>> f = (np.array([1.0, 5.0]), np.array([0.4, 0.8]))
    >>> round(pareto_dist(np.array([1.0, 5.0]), np.array([0.4, 0.6]), f, 1.0, 5.0), 6)
    0.1
    """
    if not high > low:
        return float("nan")
    dx = (cost[:, None] - frontier[0][None, :]) / (high - low)
    dy = accuracy[:, None] - frontier[1][None, :]
    return float(np.sqrt(dx**2 + dy**2).min(axis=1).mean())


@metric
def perf_gain_metric(swept: Swept) -> MetricValue:
    """Best over the sweep's settings of accuracy over that of the best single model, minus 1."""
    item = swept.against
    return MetricValue(
        float(perf_gain(item.accuracy, item.best)),
        perf_gain(item.accuracies, item.bests),
        "the best single model is never right",
        item.n,
    )


@metric
def cost_save_metric(swept: Swept) -> MetricValue:
    """Greatest saving over settings that are at least as accurate as the best single model."""
    item = swept.against
    return MetricValue(
        float(cost_save(item.cost, item.accuracy, item.best, item.best_cost)),
        cost_save(item.costs, item.accuracies, item.bests, item.best_costs),
        "no setting is as accurate as the best single model",
        item.n,
    )


@metric
def pareto_dist_metric(swept: Swept) -> MetricValue | None:
    """Mean distance of the sweep's settings to the nearest point of the joint frontier."""
    joint = swept.routed.shared.frontier.get(swept.measure)
    if joint is None:
        return None
    value = pareto_dist(swept.cost, swept.accuracy, joint, swept.low, swept.high)
    # The frontier is held as it is: the interval is that of this router's settings.
    drawn = [
        pareto_dist(c, a, joint, swept.low, swept.high)
        for c, a in zip(swept.costs, swept.accuracies, strict=True)
    ]
    return MetricValue(value, np.array(drawn), "all single models cost the same")


# Cost-aware utility: what a router is worth to someone who weighs accuracy against cost.
#
# CARROT (Somerstep et al., arXiv 2502.03261): the router picks
# argmax (1−λ)·p̂ − λ·c̃ and is paid (1−λ)·Y − λ·c̃.


#: Weights of cost at which utility is reported.
WEIGHTS = (0.0, 0.2, 0.5, 0.7, 0.9)

Scale = Callable[[Floats], Floats]


def min_max(train: Floats) -> Scale:
    """c̃ = (c − min)/(max − min) over the train answers; not clipped on others."""
    low, high = float(np.nanmin(train)), float(np.nanmax(train))
    width = high - low if high > low else 1.0
    return lambda cost: (cost - low) / width


def by_mean(train: Floats) -> Scale:
    """c̃ from 0 at the cheapest to 1 at the dearest model's mean train cost.

    Unlike `min_max` it is not ruled by a single very long answer.
    """
    means = mean_costs(train)
    low, high = float(means.min()), float(means.max())
    width = high - low if high > low else 1.0
    return lambda cost: (cost - low) / width


def unscaled(train: Floats) -> Scale:
    """c̃ = c, in the measure's own unit."""
    return lambda cost: cost


SCALINGS: Mapping[str, Callable[[Floats], Scale]] = {
    "min-max": min_max,
    "mean": by_mean,
    "none": unscaled,
}


def choose(
    scores: Floats, available: NDArray[np.bool_], expected: Floats, weight: float, order: Order
) -> Choice:
    """(n,) argmax of (1−λ)·p̂ − λ·c̃.

    Args:
        scores: (n, m) predicted scores p̂.
        expected: (m,) or (n, m) scaled cost known beforehand.
        weight: λ in [0, 1].
        order: (m,) models; the first of it wins a tie.
    """
    wide = np.broadcast_to(expected, scores.shape)

    def work(score: Floats, can: NDArray[np.bool_], cost: Floats) -> Choice:
        return best((1 - weight) * score - weight * cost, can, order)

    return np.asarray(by_rows(work, scores, available, wide))


def realised(labels: Floats, cost: Floats, choice: Choice, weight: float) -> Floats:
    """(n,) utility (1−λ)·Y − λ·c̃ of each choice, with the scaled cost it did have.

    >>> realised(np.array([[1.0, 0.0]]), np.array([[0.5, 0.0]]), np.array([0]), 0.2)
    array([0.7])
    """
    return (1 - weight) * at_choice(labels, choice) - weight * at_choice(cost, choice)


def area(xs: Floats, ys: Floats, high: float) -> float:
    """Trapezoids under a polyline, carried flat from its last point to `high`."""
    inner = float(np.sum(np.diff(xs) * (ys[1:] + ys[:-1]) / 2))
    return inner + (high - float(xs[-1])) * float(ys[-1])


def aiq(cost: Floats, accuracy: Floats, largest: float) -> float:
    """AIQ as RouterBench's code has it: area from the own cheapest point, over the largest cost.

    Args:
        cost, accuracy: (k,) points of one router's sweep.
        largest: largest mean cost of any router compared. NaN if it is not above 0.

    >>> aiq(np.array([1.0, 3.0]), np.array([0.4, 0.8]), 4.0)
    0.5
    """
    if not largest > 0:
        return float("nan")
    xs, ys = mix_frontier(cost, accuracy)
    return area(xs, ys, max(largest, float(xs[-1]))) / largest


def aiq_as_written(
    cost: Floats, accuracy: Floats, low: float, high: float, cheapest: float
) -> float:
    """AIQ as the paper writes it: mean of the hull over the common interval [low, high].

    Below a router's cheapest point it has the accuracy of the cheapest single
    model, as in `deferral.audc`: the text does not say, and nothing else can be
    had for that money. Parts of the hull outside the interval do not count.

    >>> round(aiq_as_written(np.array([2.0, 3.0]), np.array([0.4, 0.8]), 1.0, 5.0, 0.2), 6)
    0.6
    """
    if not high > low:
        return float("nan")
    xs, ys = mix_frontier(cost, accuracy)
    inside = (xs > low) & (xs < high)
    at = np.concatenate([[low], xs[inside], [high]])
    values = np.interp(at, xs, ys)
    total = area(at, values, high)
    if xs[0] > low:
        # Up to its first point the curve is the cheapest model's, not the hull's.
        first = min(float(xs[0]), high)
        values = np.interp(at[at >= first], xs, ys)
        total = (first - low) * cheapest + area(at[at >= first], values, high)
    return total / (high - low)


@metric
def aiq_metric(swept: Swept) -> MetricValue:
    """Area under the non-decreasing convex hull, from the router's cheapest point to the largest
    cost of any router, over that cost.
    """
    largest = swept.routed.shared.largest.get(swept.measure, float(swept.cost.max()))
    drawn = [aiq(c, a, largest) for c, a in zip(swept.costs, swept.accuracies, strict=True)]
    return MetricValue(
        aiq(swept.cost, swept.accuracy, largest), np.array(drawn), "nothing costs anything"
    )


@metric
def aiq_as_written_metric(swept: Swept) -> MetricValue:
    """Mean of the non-decreasing convex hull over the interval from the cheapest to the dearest
    single model.
    """
    drawn = [
        aiq_as_written(c, a, swept.low, swept.high, float(first))
        for c, a, first in zip(swept.costs, swept.accuracies, swept.cheapests, strict=True)
    ]
    value = aiq_as_written(swept.cost, swept.accuracy, swept.low, swept.high, swept.cheapest)
    why = (
        "all single models cost the same"
        if not swept.high > swept.low
        else "the cheapest single model has no label in the split"
    )
    return MetricValue(value, np.array(drawn), why)


def anchors(data: EvaluationData, measure: str) -> tuple[Floats, Floats, Floats]:
    """(n,) least and greatest cost of each query, and the score of its cheapest answer."""

    order = data.order

    def work(labels: Floats, costs: Floats) -> Floats:
        labels = labels[:, order]
        cost = np.where(np.isnan(labels), np.nan, costs[:, order])
        cheap = np.nanargmin(cost, axis=1)
        rows = np.arange(len(cost))
        return np.stack([cost[rows, cheap], np.nanmax(cost, axis=1), labels[rows, cheap]], axis=1)

    result = by_rows(work, data.test.labels, data.test.costs[measure])
    least, most, score = (np.ascontiguousarray(column) for column in result.T)
    return least, most, score


def nauc(cost: Floats, accuracy: Floats, low: float, high: float, first: float) -> float:
    """Mean height of the Pareto envelope over [low, high].

    The envelope starts at the per-query cheapest policy (low, first), the same
    for every router, joins the points nothing cheaper equals by straight lines
    and is carried flat from the last.

    Args:
        low, high: mean over queries of the least and of the greatest cost.
        first: accuracy of always asking each query's cheapest model.

    >>> round(nauc(np.array([3.0, 2.0]), np.array([0.8, 0.3]), 1.0, 5.0, 0.4), 6)
    0.7
    """
    if not high > low:
        return float("nan")
    order = np.lexsort((-accuracy, cost))
    x, y = [low], [first]
    for c, a in zip(cost[order].tolist(), accuracy[order].tolist(), strict=True):
        if a > y[-1]:
            # A setting can undercut the anchor only by rounding.
            c = min(max(c, x[-1]), high)
            if c == x[-1]:
                y[-1] = a if c > low else max(y[-1], a)
            else:
                x.append(c)
                y.append(a)
    x.append(high)
    y.append(y[-1])
    return float(np.trapezoid(y, x)) / (high - low)


@metric
def nauc_metric(swept: Swept) -> MetricValue:
    """Mean height of the Pareto envelope between the mean of each query's least and of its greatest
    cost, anchored left at the per-query cheapest policy.
    """
    least, most, score = anchors(swept.routed.data, swept.measure)
    low, high = float(least.mean()), float(most.mean())
    firsts = swept.routed.data.draws.means(score[:, None])[: len(swept.costs), 0]
    drawn = [
        nauc(c, a, low, high, float(first))
        for c, a, first in zip(swept.costs, swept.accuracies, firsts, strict=True)
    ]
    return MetricValue(
        nauc(swept.cost, swept.accuracy, low, high, float(score.mean())),
        np.array(drawn),
        "every model costs the same on every question",
    )
