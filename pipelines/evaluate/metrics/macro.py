"""Macro accuracy, its gains over chance and the best single model, its gap to the oracle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.baselines import query_oracle, random_mean
from pipelines.evaluate.metrics.spec import Found, MetricSpec, Routed
from pipelines.evaluate.selection import at_choice
from pipelines.large.rows import distinct

Floats = NDArray[np.float64]

_SOURCE = "LLMRouterBench, average accuracy over data sets and what is derived from it"


def macro(column: Floats, tasks: NDArray[np.str_]) -> float:
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


def _drawn(shown: Routed, columns: Floats) -> Floats:
    """(resamples, c) macro means of columns (n, c), tasks as drawn."""
    tasks = shown.ground.test.tasks
    names = distinct(tasks)
    total = np.zeros((shown.ground.draws.resamples, columns.shape[1]))
    seen = np.zeros_like(total)
    for task in names:
        here = shown.ground.draws.means(np.where((tasks == task)[:, None], columns, np.nan))
        known = ~np.isnan(here)
        total += np.where(known, here, 0.0)
        seen += known
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / seen


def _macro(shown: Routed) -> Found:
    hit = at_choice(shown.ground.test.labels, shown.choice)
    return Found(macro(hit, shown.ground.test.tasks), _drawn(shown, hit[:, None])[:, 0])


def _against(shown: Routed, other: Floats, sign: float = 1.0) -> Found:
    tasks = shown.ground.test.tasks
    hit = at_choice(shown.ground.test.labels, shown.choice)
    met = ~np.isnan(other)  # the questions of both
    hit, n = np.where(met, hit, np.nan), int(met.sum())
    mine, theirs = macro(hit, tasks), macro(other, tasks)
    if not theirs > 0:
        return Found(float("nan"), None, "what it is compared with has accuracy 0")
    drawn = _drawn(shown, np.stack([hit, other], axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        replicates = np.where(drawn[:, 1] > 0, sign * (drawn[:, 0] / drawn[:, 1] - 1), np.nan)
    return Found(sign * (mine / theirs - 1), replicates, n=n)


def _gain_r(shown: Routed) -> Found:
    return _against(shown, random_mean(shown.ground.test.labels))


def _gain_b(shown: Routed) -> Found:
    ground = shown.ground
    return _against(shown, ground.own(ground.best_on_test))


def _gap_o(shown: Routed) -> Found:
    y = shown.ground.test.labels
    return _against(shown, at_choice(y, query_oracle(y)), -1.0)


MACRO_ACCURACY = MetricSpec(
    name="macro_accuracy",
    direction="higher",
    unit="share",
    source=_SOURCE,
    says="mean over tasks of the accuracy in the task",
    compute=_macro,
)
GAIN_R = MetricSpec(
    name="gain_r",
    direction="higher",
    unit="share of the random policy's",
    source=_SOURCE,
    says="macro accuracy over that of a model drawn at random, minus 1 (Gain@R)",
    compute=_gain_r,
)
GAIN_B = MetricSpec(
    name="gain_b",
    direction="higher",
    unit="share of the best single model's",
    source=_SOURCE,
    says="macro accuracy over that of the best single model on test, minus 1 (Gain@B)",
    compute=_gain_b,
)
GAP_O = MetricSpec(
    name="gap_o",
    direction="lower",
    unit="share of the oracle's",
    source=_SOURCE,
    says="1 minus macro accuracy over that of the per-query oracle (Gap@O)",
    compute=_gap_o,
)
