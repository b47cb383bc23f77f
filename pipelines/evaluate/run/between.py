"""Between routers, and between two models: comparisons with their tests, trade-offs of a pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats
from routeyard.pipelines.bands import Bands
from routeyard.pipelines.evaluate.compare import (
    Comparison,
    compare,
    compare_matched,
    compare_published,
)
from routeyard.pipelines.evaluate.cost_result import CostResult
from routeyard.pipelines.evaluate.pairs import ModelPair, Traded, oracle_wanted, trade, wanted_of
from routeyard.pipelines.evaluate.router_result import RouterResult
from routeyard.pipelines.evaluate.rows import MetricRow, column_metric
from routeyard.pipelines.metrics.bootstrap import Draws, interval
from routeyard.pipelines.metrics.evaluation_data import EvaluationData
from routeyard.pipelines.metrics.selection import Choice, at_choice
from routeyard.pipelines.routers.base import Queries

#: Accuracy over the test questions that are not also in train.
WITHOUT_LEAKS = "accuracy_without_leaks"


def accuracy(data: EvaluationData, one: RouterResult, name: str) -> tuple[float, Floats]:
    """(value, replicates) of `accuracy` or `WITHOUT_LEAKS` of a router's choices."""
    if name == WITHOUT_LEAKS and data.clean is not None:
        return _over(data, one, data.clean)
    return float(at_choice(data.test.labels, one.choice).mean()), one.accuracy


def comparisons(data: EvaluationData, measured: Sequence[RouterResult]) -> list[Comparison]:
    """All of routers on a whole pool."""
    found = _accuracies(data, measured, "accuracy")
    if data.clean is not None:
        found += _accuracies(data, measured, WITHOUT_LEAKS)
    return found + cost_comparisons(data, [one.costs for one in measured])


def cost_comparisons(data: EvaluationData, measured: Sequence[CostResult]) -> list[Comparison]:
    """Those of areas, and of scores at one budget; without a measure at any price."""
    found: list[Comparison] = []
    for name in data.prices:
        areas = {one.router: one.areas[name] for one in measured}
        found += compare(f"audc[{name}]", data.split, areas)
    matched = {one.router: one.matched for one in measured}
    budget = f"mcnemar[{data.measure or 'accuracy'}]"
    found += compare_matched(budget, data.split, matched)
    if data.measure is not None:
        name = f"mcnemar_as_published[{data.measure}]"
        grids = {one.router: one.grids[data.measure] for one in measured}
        found += compare_published(name, data.split, grids, data.test.decided)
    return found


def _accuracies(
    data: EvaluationData, measured: Sequence[RouterResult], name: str
) -> list[Comparison]:
    hits = {one.router: accuracy(data, one, name) for one in measured}
    asked = np.ones(data.test.n_queries, dtype=bool)
    if name == WITHOUT_LEAKS and data.clean is not None:
        asked = data.clean
    single = np.where(asked, data.own(data.single), np.nan)
    met = ~np.isnan(single)
    if met.any():
        drawn = data.draws.means(single[:, None])[:, 0]
        hits["best single"] = (float(single[met].mean()), drawn)
    on: dict[str, dict[str, tuple[float, Floats]]] = {}
    if not met[asked].all():
        # Where the best single model has no label it is compared with nobody.
        on["best single"] = {one.router: _over(data, one, met) for one in measured}
    asks = {one.router: one.wanted for one in measured}
    asks["best single"] = np.full(data.test.n_queries, data.single)
    return [_unless_open(data, row, asks, asked) for row in compare(name, data.split, hits, on=on)]


def _unless_open(
    data: EvaluationData, row: Comparison, asks: Mapping[str, Choice], asked: Bools
) -> Comparison:
    """The comparison; not significant where missing or undecided labels leave the order open: the
    difference if those of the better one were wrong and those of the other right."""
    ahead, behind = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
    better, worse = (at_choice(data.test.labels, asks[name]) for name in (ahead, behind))
    if not row.significant or not np.isnan((better + worse)[asked]).any():
        return row
    least = np.nan_to_num(better, nan=0.0) - np.nan_to_num(worse, nan=1.0)
    least = np.where(asks[ahead] == asks[behind], 0.0, least)
    drawn = data.draws.means(np.where(asked, least, np.nan)[:, None])[:, 0]
    return row if interval(drawn)[0] > 0 else replace(row, significant=False)


def _over(data: EvaluationData, one: RouterResult, met: Bools) -> tuple[float, Floats]:
    """Accuracy of a router's choices over some of the questions: value, replicates."""
    hit = np.where(met, at_choice(data.test.labels, one.choice), np.nan)
    return float(hit[met].mean()) if met.any() else np.nan, data.draws.means(hit[:, None])[:, 0]


def traded(
    data: EvaluationData,
    on: ModelPair,
    scores: Mapping[str, Floats],
    pair_routers: Mapping[str, Callable[[Queries], Floats]],
    bands: Bands | None,
    by: str = "confidence",
) -> list[Traded]:
    """Every router on the pair, and the oracle; `by` as in `pairs.wanted_of`."""
    small, large = (data.test.model_ids.index(name) for name in on.names)
    groups = None if data.draws.groups is None else data.draws.groups[on.rows]
    draws = Draws(len(on.rows), data.draws.resamples, data.draws.seed, groups)
    wanted = {name: wanted_of(s, small, large, by)[on.rows] for name, s in scores.items()}
    queries = data.test.take(on.rows).queries()
    for name, function in pair_routers.items():
        wanted[name] = np.asarray(function(queries), dtype=np.float64)
    wanted["oracle"] = oracle_wanted(on)
    return [trade(on, draws, data.split, name, values, bands) for name, values in wanted.items()]


def pair_levels(data: EvaluationData, on: ModelPair) -> list[MetricRow]:
    draws = Draws(len(on.rows), data.draws.resamples, data.draws.seed)
    return [
        column_metric(name, "accuracy", data.split, values, draws.means(values[:, None])[:, 0], "")
        for name, values in (
            (f"small:{on.names[0]}", on.small),
            (f"large:{on.names[1]}", on.large),
        )
    ]
