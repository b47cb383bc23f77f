"""Informative rounds with settings chosen on one release and stated on others.

`python -m benchmarks informative --tune RELEASE --state RELEASE … --json` replays the rounds
on the first release under every setting of a small grid, takes the setting that saves most
calls on average over the budgets, and replays it on the others, which had no say. The defaults
of `collect.informative` are beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.collect.informative import Z, collect_informatively
from routeyard.pipelines.collect.plan import covered
from routeyard.pipelines.common.arrays import Floats, Ints
from routeyard.schemas.recipe.collect import Coverage, Informative

#: What is tried: share of the budget in the pilot, standard errors apart, share of equal chances.
GRID = {"pilot": (0.25, 0.5), "apart": (1.96, 2.4, 2.8), "floor": (0.3, 1.0)}
BUDGETS = (0.05, 0.1, 0.2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tune", type=Path, required=True, help="the release settings are from")
    parser.add_argument("--state", type=Path, nargs="+", required=True, help="the others")
    parser.add_argument("--seeds", type=int, default=8)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    tuned = _matrix(arguments.tune)
    seeds = range(1000, 1000 + arguments.seeds)  # not those of the study
    grid = []
    for values in product(*GRID.values()):
        settings = dict(zip(GRID, values, strict=True))
        grid.append((float(np.mean([m for m, _, _ in _saved(tuned, seeds, settings)])), settings))
    best, chosen = max(grid, key=lambda pair: pair[0])
    out: dict[str, Any] = {"tuned_on": _name(arguments.tune), "chosen": chosen}
    out |= {"saved_there": round(best, 3), "grid": [round(value, 3) for value, _ in grid]}
    for release in arguments.state:
        matrix, fresh = _matrix(release), range(arguments.seeds)
        out[_name(release)] = {
            "questions": len(matrix[0]),
            "models": matrix[0].shape[1],
            "budgets": list(BUDGETS),
            "chosen": [[round(v, 3) for v in row] for row in _saved(matrix, fresh, chosen)],
            "defaults": [[round(v, 3) for v in row] for row in _saved(matrix, fresh, {})],
        }
    return out


def _name(release: Path) -> str:
    return release.resolve().parent.name


def _matrix(release: Path) -> tuple[Any, Any, tuple[Any, Any]]:
    """Scores and tasks of the questions that all models have a label of; uniform coverage."""
    from routeyard.pipelines.release.reader import open_release

    with open_release(release) as opened:
        matrix = opened.matrix("score")
        rows = opened.sql("SELECT query_id, task FROM queries").to_pylist()
    task = {row["query_id"]: row["task"] for row in rows}
    whole = ~np.isnan(matrix.values).any(axis=1)
    names = np.array([task[query] for query in matrix.queries])[whole]
    scores = (matrix.values[whole] >= 0.5).astype(np.float64)
    tasks = np.unique(names, return_inverse=True)[1]
    return scores, tasks, uniform_widths(scores, tasks, 0)


def _saved(matrix: Any, seeds: range, settings: dict[str, float]) -> list[tuple[float, ...]]:
    """Per budget: calls of uniform coverage over ours, and its interval over seeds."""
    scores, tasks, uniform = matrix
    found: list[tuple[float, ...]] = []
    for budget in BUDGETS:
        saved = replay(scores, tasks, budget, uniform, seeds, **settings).saved
        found.append((float(saved.mean()), *mean_interval(saved, 0)))
    return found


# Calls that informative rounds save against uniform coverage, replayed on a full matrix.

#: Shares of the pool at which uniform coverage is replayed; between them it is interpolated.
_SHARES = (0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


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
            resolve=1e-9, pilot=max(int(n * pilot * calls // (n * models)), 20),
            calls=calls,
        )  # fmt: skip
        made = collect_informatively(
            tasks,
            models,
            plan,
            lambda asked: np.where(asked, scores, np.nan),
            rounds=40,
            seed=seed,
            **settings,
        )
        width = _width(made.unresolved(0.0))
        needed = np.interp(-width, -uniform[1], uniform[0]) * n * models
        inside = _inside(made.weighted, made.covariance, scores.mean(axis=0))
        found.append((needed / made.asked.sum(), width, inside))
    return Replay(*np.array(found).T)


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


def mean_interval(values: Floats, seed: int) -> tuple[float, float]:
    """95 % interval of a mean over seeds, the seeds redrawn."""
    random = np.random.default_rng(seed)
    means = values[random.integers(0, len(values), (2_000, len(values)))].mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))
