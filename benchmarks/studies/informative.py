"""Informative rounds with settings chosen on one release and stated on others.

`python -m benchmarks informative --tune RELEASE --state RELEASE … --json` replays the rounds
on the first release under every setting of a small grid, takes the setting that saves most
calls on average over the budgets, and replays it on the others, which had no say. The defaults
of `collect.informative` are beside it.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

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
    from routeyard.pipelines.evaluate.studies.items import uniform_widths
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
    from routeyard.pipelines.evaluate.studies.items import mean_interval, replay

    scores, tasks, uniform = matrix
    found: list[tuple[float, ...]] = []
    for budget in BUDGETS:
        saved = replay(scores, tasks, budget, uniform, seeds, **settings).saved
        found.append((float(saved.mean()), *mean_interval(saved, 0)))
    return found
