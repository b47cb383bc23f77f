"""Between routers, and between two models: comparisons with their tests, trade-offs of a pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.bootstrap import Draws
from pipelines.evaluate.compare import Comparison, compare, compare_matched, compare_published
from pipelines.evaluate.ground import Ground
from pipelines.evaluate.measured import Measured
from pipelines.evaluate.pairs import Pair, Traded, oracle_wanted, trade, wanted_of
from pipelines.evaluate.rows import Metric, metric
from pipelines.evaluate.selection import at_choice
from pipelines.evaluate.tradeoff import Bands
from pipelines.routers.base import Queries

Floats = NDArray[np.float64]


def comparisons(ground: Ground, measured: Sequence[Measured]) -> list[Comparison]:
    y = ground.test.labels
    hits = {one.router: (float(at_choice(y, one.choice).mean()), one.accuracy) for one in measured}
    single = ground.own(ground.single)
    met = ~np.isnan(single)
    if met.any():
        drawn = ground.draws.means(single[:, None])[:, 0]
        hits["best single"] = (float(single[met].mean()), drawn)
    on: dict[str, dict[str, tuple[float, Floats]]] = {}
    if not met.all():
        # Where the best single model has no label it is compared with nobody.
        on["best single"] = {one.router: _over(ground, one, met) for one in measured}
    found = compare("accuracy", ground.split, hits, on=on)
    for name in ground.prices:
        areas = {one.router: one.areas[name] for one in measured}
        found += compare(f"audc[{name}]", ground.split, areas)
    matched = {one.router: one.matched for one in measured}
    budget = f"mcnemar[{ground.measure or 'accuracy'}]"
    found += compare_matched(budget, ground.split, matched)
    if ground.measure is not None:
        name = f"mcnemar_as_published[{ground.measure}]"
        grids = {one.router: one.grids[ground.measure] for one in measured}
        found += compare_published(name, ground.split, grids, ground.test.decided)
    return found


def _over(ground: Ground, one: Measured, met: NDArray[np.bool_]) -> tuple[float, Floats]:
    """Accuracy of a router's choices over some of the questions: value, replicates."""
    hit = np.where(met, at_choice(ground.test.labels, one.choice), np.nan)
    return float(hit[met].mean()) if met.any() else np.nan, ground.draws.means(hit[:, None])[:, 0]


def traded(
    ground: Ground,
    on: Pair,
    scores: Mapping[str, Floats],
    pair_routers: Mapping[str, Callable[[Queries], Floats]],
    bands: Bands | None,
    by: str = "confidence",
) -> list[Traded]:
    """Every router on the pair, and the oracle; `by` as in `pairs.wanted_of`."""
    small, large = (ground.test.model_ids.index(name) for name in on.names)
    groups = None if ground.draws.groups is None else ground.draws.groups[on.rows]
    draws = Draws(len(on.rows), ground.draws.resamples, ground.draws.seed, groups)
    wanted = {name: wanted_of(s, small, large, by)[on.rows] for name, s in scores.items()}
    queries = ground.test.take(on.rows).queries()
    for name, function in pair_routers.items():
        wanted[name] = np.asarray(function(queries), dtype=np.float64)
    wanted["oracle"] = oracle_wanted(on)
    return [trade(on, draws, ground.split, name, values, bands) for name, values in wanted.items()]


def pair_levels(ground: Ground, on: Pair) -> list[Metric]:
    rows = []
    draws = Draws(len(on.rows), ground.draws.resamples, ground.draws.seed)
    for role, name, values in (("small", on.names[0], on.small), ("large", on.names[1], on.large)):
        rows.append(
            metric(
                f"{role}:{name}",
                "accuracy",
                ground.split,
                float(values.mean()),
                draws.means(values[:, None])[:, 0],
                n=len(on.rows),
            )
        )
    return rows
