"""Macro accuracy, its gains over chance and the best single model, its gap to the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.common.arrays import Floats, Names, ratio
from routeyard.pipelines.common.memmap import distinct
from routeyard.pipelines.evaluate.metrics.selection import at_choice, query_oracle, random_mean
from routeyard.pipelines.evaluate.metrics.spec import MetricValue, Routed, metric


def macro(column: Floats, tasks: Names) -> float:
    """Mean over tasks of a column's (n,) mean in the task; unknown values do not count.

    >>> macro(np.array([1.0, 0.0, 1.0]), np.array(["a", "a", "b"]))
    0.75
    """
    means = [
        float(np.nanmean(column[tasks == task]))
        for task in distinct(tasks)
        if not np.isnan(column[tasks == task]).all()
    ]
    return float(np.mean(means)) if means else float("nan")


def _drawn(routed: Routed, columns: Floats) -> Floats:
    """(resamples, c) macro means of columns (n, c), tasks as drawn.

    The questions of a task are side by side, so that each is looked at once, not once a task.
    """
    draws, width = routed.data.draws, columns.shape[1]
    task = np.unique(routed.data.test.tasks, return_inverse=True)[1]
    order = np.argsort(task, kind="stable")
    ends = np.cumsum(np.bincount(task))
    known = ~np.isnan(columns)
    values = np.concatenate([np.where(known, columns, 0.0), known], axis=1)[order]
    total = np.zeros((draws.resamples, width))
    seen = np.zeros_like(total)
    for here, counts in draws.passing():
        sorted_counts = counts[:, order]
        for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            sums = sorted_counts[:, start:end] @ values[start:end]
            means = ratio(sums[:, :width], sums[:, width:])
            told = ~np.isnan(means)
            total[here] += np.where(told, means, 0.0)
            seen[here] += told
    return ratio(total, seen)


@dataclass(frozen=True, eq=False)
class Macros:
    """A router's scores beside what they are compared with, all resampled together.

    Attributes:
        met: name of what is compared → ((n,) the router's scores on the questions of both,
            (n,) the other's). `own`: its scores alone, twice.
        drawn: the same names → ((r,), (r,)) macro means of both over resamples.
    """

    met: Mapping[str, tuple[Floats, Floats]]
    drawn: Mapping[str, tuple[Floats, Floats]]


def macros(routed: Routed) -> Macros:
    """Macro means of a router, a model at random, the best one on test, and the oracle."""
    data = routed.data
    y = data.test.labels
    hit = at_choice(y, routed.choice)
    others = {
        "own": hit,
        "random": random_mean(y),
        "best": data.own(data.best_on_test),
        "oracle": at_choice(y, query_oracle(y)),
    }
    met = {name: (np.where(np.isnan(other), np.nan, hit), other) for name, other in others.items()}
    columns = np.stack([column for pair in met.values() for column in pair], axis=1)
    drawn = _drawn(routed, columns)
    return Macros(met, {name: (drawn[:, 2 * k], drawn[:, 2 * k + 1]) for k, name in enumerate(met)})


@metric
def macro_accuracy_metric(routed: Routed) -> MetricValue:
    """Mean over tasks of the accuracy in the task."""
    found = routed.once(macros)
    return MetricValue(macro(found.met["own"][0], routed.data.test.tasks), found.drawn["own"][0])


def _against(routed: Routed, name: str, sign: float = 1.0) -> MetricValue:
    tasks = routed.data.test.tasks
    found = routed.once(macros)
    hit, other = found.met[name]
    mine, theirs = macro(hit, tasks), macro(other, tasks)
    if not theirs > 0:
        return MetricValue(float("nan"), None, "what it is compared with has accuracy 0")
    replicates = sign * (ratio(*found.drawn[name]) - 1)
    n = int(np.count_nonzero(~np.isnan(other)))
    return MetricValue(sign * (mine / theirs - 1), replicates, n=n)


@metric
def gain_r_metric(routed: Routed) -> MetricValue:
    """Macro accuracy over that of a model drawn at random, minus 1 (Gain@R)."""
    return _against(routed, "random")


@metric
def gain_b_metric(routed: Routed) -> MetricValue:
    """Macro accuracy over that of the best single model on test, minus 1 (Gain@B)."""
    return _against(routed, "best")


@metric
def gap_o_metric(routed: Routed) -> MetricValue:
    """1 minus macro accuracy over that of the per-query oracle (Gap@O)."""
    return _against(routed, "oracle", -1.0)
