"""MESS+ online over a release's test questions, in several orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from routeyard.pipelines.common.errors import BadInput


def stream(
    release: Path,
    *,
    alpha: float,
    encoder: str,
    trade_off: float,
    explore: float,
    measure: str | None,
    shuffles: int,
    cache: Path,
) -> dict[str, Any]:
    """Rows for MESS+ and each single model: share answered well, cost, share explored.

    Raises:
        BadInput: no cost is known, or no question has all labels and costs.
    """
    from routeyard.flows.evaluation.released import read_release, vectors
    from routeyard.pipelines.common.matrix import MEASURES, core_of, first_measure
    from routeyard.pipelines.evaluate.experiment import FIRST_SEED, PROTOCOL_SEEDS, default_scheme
    from routeyard.pipelines.routers.networks import serve

    tables = read_release(release)
    core = core_of(tables.without("embeddings"))
    name = first_measure(core.costs, measure)
    if name is None:
        raise BadInput(
            "the release knows no cost, and MESS+ weighs it against the level",
            next_step="give the pool prices, or `params_b`",
        )
    scheme = default_scheme(core, None)
    matrix = vectors(tables, core, [encoder], scheme=scheme, cache=cache)[encoder]
    rows = core.rows(scheme, "test")
    cost = np.asarray(core.costs[name], dtype=np.float64)[rows]
    whole = ~(np.isnan(core.labels[rows]).any(axis=1) | np.isnan(cost).any(axis=1))
    if not whole.any():
        raise BadInput(f"no test question has a label and {name} of every model")
    rows, cost = rows[whole], cost[whole]
    labels = core.labels[rows]
    seeds = [*PROTOCOL_SEEDS, *range(FIRST_SEED + 1, FIRST_SEED + shuffles)][:shuffles]
    done = [
        serve(
            matrix[rows], labels, cost, alpha=alpha, trade_off=trade_off, explore=explore, seed=seed
        )
        for seed in seeds
    ]
    hits = np.array([one.hit.mean() for one in done])
    spent = np.array([one.spent.mean() for one in done])
    said = [
        _row("mess-plus", hits, spent, float(np.mean([one.explored.mean() for one in done]))),
        *(
            _row(model, labels[:, [k]].mean(axis=0), cost[:, [k]].mean(axis=0), 0.0)
            for k, model in enumerate(core.model_ids)
        ),
    ]
    return {
        "questions": len(rows),
        "alpha": alpha,
        "encoder": encoder,
        "measure": name,
        "unit": MEASURES[name],
        "seeds": seeds,
        "rows": said,
    }


def _row(name: str, hit: Any, cost: Any, explored: float) -> dict[str, Any]:
    def spread(values: Any) -> float:
        return float(values.std(ddof=1)) if len(values) > 1 else 0.0

    return {
        "name": name,
        "answered_well": float(hit.mean()),
        "answered_well_sd": spread(hit),
        "cost": float(cost.mean()),
        "cost_sd": spread(cost),
        "explored": explored,
    }
