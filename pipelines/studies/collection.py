"""Calls that informative rounds save against uniform coverage, replayed on a full matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.collect.coverage import covered
from routeyard.pipelines.collect.informative import Z, collect_informatively
from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.studies.study import StudyCell
from routeyard.schemas.recipe.collect import Coverage, Informative

#: Shares of all calls that the rounds may spend.
BUDGETS = (0.05, 0.1, 0.2, 0.3)
#: Shares of the pool at which uniform coverage is replayed; between them it is interpolated.
_SHARES = (0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_SEEDS = 8
#: Pairs of models over which the bound's median is taken.
_PAIRS = 60


@dataclass(frozen=True)
class Replay:
    """What rounds of one budget came to, one value per seed.

    Attributes:
        saved: Calls that uniform coverage needs for the same width, over ours.
        width: Mean number of places that a rank may take beside its own.
        inside: Share of true differences inside their 95 % intervals.
    """

    saved: Floats
    width: Floats
    inside: Floats


def complete(context: StudyContext) -> tuple[Floats, Ints]:
    """Scores (questions, models) and tasks of the questions that all models have a label of."""
    whole = context.matrix.known.all(axis=0)
    scores = context.matrix.correct[:, whole].T.astype(np.float64)
    return scores, np.unique(context.matrix.task[whole], return_inverse=True)[1]


def replay(
    scores: Floats,
    tasks: Ints,
    budget: float,
    uniform: tuple[Floats, Floats],
    seeds: Sequence[int],
    *,
    pilot: float = 0.5,
    **settings: Any,
) -> Replay:
    """Rounds on a full matrix, seed by seed.

    Args:
        budget: Share of all pairs that the rounds may ask.
        uniform: Shares of the pool and widths of `uniform_widths`.
        pilot: Share of the budget that the pilot takes.
        settings: `apart`, `floor` of `collect_informatively`.
    """
    n, models = scores.shape
    calls = int(budget * n * models)
    found = []
    for seed in seeds:
        plan = Informative(
            # No difference is small enough: all of the budget is spent.
            resolve=1e-9, pilot=max(int(n * pilot * calls // (n * models)), 20), rounds=40,
            calls=calls, seed=seed,
        )  # fmt: skip
        made = collect_informatively(
            tasks, models, plan, lambda asked: np.where(asked, scores, np.nan), **settings
        )
        width = _width(made.unresolved(0.0))
        needed = np.interp(-width, -uniform[1], uniform[0]) * n * models
        inside = _inside(made.weighted, made.covariance, scores.mean(axis=0))
        found.append((needed / made.asked.sum(), width, inside))
    return Replay(*np.array(found).T)


def cells(context: StudyContext) -> Sequence[StudyCell]:
    """One row per budget; every question of which all models have a label is used."""
    scores, tasks = complete(context)
    uniform = uniform_widths(scores, tasks, context.seed)
    bound = _bound(scores)
    out = []
    for budget in BUDGETS:
        seeds = range(context.seed, context.seed + _SEEDS)
        made = replay(scores, tasks, budget, uniform, seeds)
        row = f"{100 * budget:g} % of all calls"
        low, high = mean_interval(made.saved, context.seed)
        plain = float(np.interp(budget, *uniform))
        out += [
            StudyCell(row, "calls of uniform coverage over ours", float(made.saved.mean()), low=low,
                 high=high),
            StudyCell(row, "rank interval, rounds", float(made.width.mean())),
            StudyCell(row, "rank interval, uniform", plain),
            StudyCell(row, "true differences inside", float(made.inside.mean()), "percent"),
            StudyCell(row, "were all ease known", bound),
        ]  # fmt: skip
    return out


def uniform_widths(scores: Floats, tasks: Any, seed: int) -> tuple[Floats, Floats]:
    """Shares of the pool, and the mean width of rank intervals from plain means at each."""
    n, models = scores.shape
    queries = pa.table(
        {
            "query_id": [f"{row}" for row in range(n)],
            "task": [f"{task}" for task in tasks],
            "metadata": ["{}"] * n,
        }
    )
    draws = sorted({max(1, round(share * models)) for share in _SHARES})
    found = []
    for draw in draws:
        width = []
        for number in range(3):
            coverage = Coverage(share=draw / models, seed=seed + number)
            asked = np.zeros(scores.shape, dtype=bool)
            for m, rows in enumerate(covered(queries, models, coverage)):
                asked[rows, m] = True
            width.append(_width(_open(scores, tasks, asked)))
        found.append(float(np.mean(width)))
    return np.array(draws) / models, np.minimum.accumulate(found)


def _open(scores: Floats, tasks: Any, asked: Any) -> Any:
    """Pairs of models whose plain means are not told apart; questions are drawn by task."""
    n, models = scores.shape
    count = asked.sum(axis=0)
    total = np.zeros((int(tasks.max()) + 1, models))
    number = np.zeros_like(total)
    np.add.at(total, tasks, np.where(asked, scores, 0.0))
    np.add.at(number, tasks, asked)
    mean = total.sum(axis=0) / count
    rest = np.where(asked, scores - (total / np.maximum(number, 1))[tasks], 0.0)
    rest *= np.sqrt(1 - count / n) / count
    covariance = rest.T @ rest
    return _apart(mean, covariance, Z)


def _apart(mean: Floats, covariance: Floats, z: float) -> Any:
    spread = _spread(covariance)
    open_ = (np.abs(mean[:, None] - mean) <= z * spread) & (spread > 0)
    np.fill_diagonal(open_, False)
    return open_


def _spread(covariance: Floats) -> Floats:
    """(m, m) standard deviation of the difference between every two models."""
    variance = np.diag(covariance)
    return np.asarray(np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0)))


def _width(open_: Any) -> float:
    """Mean number of places that a model's rank can take beside its own."""
    return float(open_.sum() / len(open_))


def _inside(mean: Floats, covariance: Floats, truth: Floats) -> float:
    """Share of pairs whose true difference lies in its 95 % interval."""
    error = mean - truth
    upper = np.triu_indices(len(truth), 1)
    # Exact where everything was asked: then the error is that of rounding.
    outside = np.abs(error[:, None] - error) > Z * _spread(covariance) + 1e-9
    return float(1 - outside[upper].mean())


def _bound(scores: Floats) -> float:
    """Calls that pairing, and knowing the ease of every question, could save for a pair.

    For a pair of models the questions are grouped by how many of the others are right, and
    each group is drawn in proportion to the standard deviation of the pair's difference
    there (Neyman's allocation): the variance against that of two means over different
    questions, median over pairs. No rounds can know that much.
    """
    n, models = scores.shape
    right = scores.sum(axis=1)
    mean = scores.mean(axis=0)
    pairs = np.column_stack(np.triu_indices(models, 1))
    gains = []
    for a, b in pairs[:: max(len(pairs) // _PAIRS, 1)]:
        ease = np.rint(right - scores[:, a] - scores[:, b]).astype(np.int64)
        gap = scores[:, a] - scores[:, b]
        count = np.bincount(ease, minlength=models)
        first = np.bincount(ease, gap, models) / np.maximum(count, 1)
        second = np.bincount(ease, gap**2, models) / np.maximum(count, 1)
        spread = np.sqrt(np.maximum(second - first**2, 0.0))
        apart = mean[a] * (1 - mean[a]) + mean[b] * (1 - mean[b])
        gains.append(apart / max(float((count / n * spread).sum() ** 2), 1e-12))
    return float(np.median(gains))


def mean_interval(values: Floats, seed: int) -> tuple[float, float]:
    """95 % interval of a mean over seeds, the seeds redrawn."""
    random = np.random.default_rng(seed)
    means = values[random.integers(0, len(values), (2_000, len(values)))].mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))
