"""One router on its ground: every metric of a whole pool with its interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate import plateau
from pipelines.evaluate.baselines import mix_frontier, query_oracle, single_means
from pipelines.evaluate.deferral import audc, curve_columns, peak_accuracy, qnc
from pipelines.evaluate.ground import Ground, cheapest_and_dearest
from pipelines.evaluate.rows import Metric, curve_rows, metric
from pipelines.evaluate.selection import (
    Choice,
    at_choice,
    best,
    cost_penalised,
    penalties,
    within_budget,
)
from pipelines.evaluate.utility import SCALINGS, WEIGHTS, choose, realised

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measured:
    """Rows of one router, and what comparisons need of it.

    Attributes:
        choice: (n,) model asked without regard to cost.
        accuracy: (resamples,) replicates of its accuracy.
        areas: measure → (value, replicates) of its AUDC.
        matched: (n,) scores at the mean cost of the most accurate single model.
    """

    router: str
    metrics: list[Metric]
    curves: list[dict[str, Any]]
    profile: Floats
    choice: Choice
    accuracy: Floats
    matched: Floats
    areas: dict[str, tuple[float, Floats]] = field(default_factory=dict)


def measure(
    ground: Ground, router: str, scores: Floats, *, points: int = 100, scaling: str = "min-max"
) -> Measured:
    """All metrics of a router that gives scores (n_test, m).

    Args:
        points: settings of each deferral curve.
        scaling: how utility scales costs, a key of `SCALINGS`.
    """
    test, split = ground.test, ground.split
    choice = best(scores, ground.available(), ground.price)
    hit = at_choice(test.labels, choice)
    rows, replicates = _at_any_price(ground, router, choice, hit)
    curves: list[dict[str, Any]] = []
    areas: dict[str, tuple[float, Floats]] = {}
    for name in ground.prices:
        found, drawn, area = _deferral(ground, router, scores, name, points)
        rows += found
        curves += drawn
        areas[name] = area
        rows += _utility(ground, router, scores, name, scaling)
    profile = plateau.selection_profile(choice, test.n_models)
    rows += _selection(ground, router, choice, profile)
    matched = hit
    if ground.measure is not None:
        matched = at_choice(test.labels, _matched(ground, scores, points))
        drawn_means = ground.draws.means(matched[:, None])[:, 0]
        name = f"accuracy_at_budget[{ground.measure}]"
        rows.append(metric(router, name, split, float(matched.mean()), drawn_means))
    return Measured(router, rows, curves, profile, choice, replicates, matched, areas)


def _at_any_price(
    ground: Ground, router: str, choice: Choice, hit: Floats
) -> tuple[list[Metric], Floats]:
    """Accuracy, gap to the oracle and exchange with the best single model."""
    y, split = ground.test.labels, ground.split
    top = at_choice(y, query_oracle(y))
    single = y[:, ground.single]
    right, other = hit >= plateau.RIGHT, single >= plateau.RIGHT
    known = ~np.isnan(single)
    hard = plateau.hard_subset(y, ground.best_on_test)
    easy = plateau.solvable(y) & ~hard
    where = {
        "accuracy": hit,
        "gap_to_oracle": top - hit,
        "gap_to_oracle_hard": np.where(hard, top - hit, np.nan),
        "gap_to_oracle_easy": np.where(easy, top - hit, np.nan),
        "gain_over_best_single": hit - single,
        "disagreement_with_best_single": (choice != ground.single).astype(np.float64),
        "won_from_best_single": np.where(known, right & ~other, np.nan),
        "lost_to_best_single": np.where(known, other & ~right, np.nan),
        "changed_against_best_single": np.where(known, right != other, np.nan),
    }
    columns = np.stack(list(where.values()), axis=1).astype(np.float64)
    replicates = ground.draws.means(columns)
    with np.errstate(invalid="ignore"):
        values = [
            float(np.nanmean(column)) if not np.isnan(column).all() else float("nan")
            for column in columns.T
        ]
    rows = [
        metric(router, name, split, values[k], replicates[:, k], "no such question in the split")
        for k, name in enumerate(where)
    ]
    gap = plateau.oracle_gap(y, choice, ground.best_on_test)
    # (gap on hard questions)/(gap on all solvable ones), in every resample.
    parts = np.stack([np.where(hard, top - hit, 0.0), np.where(hard | easy, top - hit, 0.0)], 1)
    sums = ground.draws.sums(parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)
    rows.append(
        metric(
            router,
            "hard_share_of_gap",
            split,
            gap.share_explained,
            share,
            "there is no gap to the oracle",
        )
    )
    return rows, replicates[:, 0]


def _deferral(
    ground: Ground, router: str, scores: Floats, name: str, points: int
) -> tuple[list[Metric], list[dict[str, Any]], tuple[float, Floats]]:
    """Curves against realised mean cost and against a budget, with what is read off them."""
    test, split, draws = ground.test, ground.split, ground.draws
    y, cost, price = test.labels, test.costs[name], ground.prices[name]
    can = ground.available(name)
    cheapest, low, high = cheapest_and_dearest(ground, name)
    weights = penalties(points)
    budgets = np.linspace(low, high, points)
    swept = cost_penalised(scores, can, price, weights)
    bought = within_budget(scores, can, price, budgets)
    goal = ground.best_on_test
    # Single models can lack a label or cost on some question; routed choices cannot.
    singles = np.stack([y[:, cheapest], y[:, goal], cost[:, goal]], axis=1)
    columns = np.concatenate(
        [curve_columns(y, swept), curve_columns(cost, swept), curve_columns(y, bought)], axis=1
    )
    unit = _exact_unit(columns[:, points : 2 * points])
    columns[:, points : 2 * points] = np.rint(columns[:, points : 2 * points] / unit)
    replicates, single = draws.means(columns), draws.means(singles)
    replicates[:, points : 2 * points] *= unit
    value = columns.mean(axis=0)
    value[points : 2 * points] *= unit
    single_value = np.nanmean(singles, axis=0)
    acc, paid, within = (slice(k * points, (k + 1) * points) for k in range(3))
    area = float(audc(value[paid], value[acc], low, high, single_value[0]))
    areas = audc(replicates[:, paid], replicates[:, acc], low, high, single[:, 0])
    flat = np.broadcast_to(budgets, (len(replicates), points))
    flat_area = float(audc(budgets, value[within], low, high, single_value[0]))
    flat_areas = audc(flat, replicates[:, within], low, high, single[:, 0])
    neutral = float(qnc(value[paid], value[acc], single_value[1], single_value[2]))
    neutrals = qnc(replicates[:, paid], replicates[:, acc], single[:, 1], single[:, 2])
    same = "all single models cost the same, so there is no trade-off"
    rows = [
        metric(router, f"audc[{name}]", split, area, areas, same),
        metric(router, f"audc_budget[{name}]", split, flat_area, flat_areas, same),
        metric(
            router,
            f"peak_accuracy[{name}]",
            split,
            float(peak_accuracy(value[acc])),
            peak_accuracy(replicates[:, acc]),
        ),
        metric(
            router,
            f"qnc[{name}]",
            split,
            neutral,
            neutrals,
            "the curve never matches the most accurate single model",
        ),
        metric(
            router, f"mean_cost[{name}]", split, float(value[paid][-1]), replicates[:, paid][:, -1]
        ),
    ]
    curves = curve_rows(
        router, "deferral", name, split, weights, value[paid], value[acc], replicates[:, acc]
    )
    curves += curve_rows(
        router, "budget", name, split, budgets, budgets, value[within], replicates[:, within]
    )
    return rows, curves, (area, areas)


def _matched(ground: Ground, scores: Floats, points: int) -> Choice:
    """(n,) choices of the last setting whose mean cost is within the best single model's.

    All routers are held to the same money; where even the cheapest setting
    costs more, that one is taken.
    """
    name = ground.measure or ""
    cost = ground.test.costs[name]
    swept = cost_penalised(scores, ground.available(name), ground.prices[name], penalties(points))
    paid = curve_columns(cost, swept).mean(axis=0)
    budget = float(single_means(cost)[ground.best_on_test]) * (1 + 1e-12)
    within = np.flatnonzero(paid <= budget)
    return np.asarray(swept[:, within[-1] if len(within) else 0])


def _exact_unit(costs: Floats) -> float:
    """Unit in which costs are rounded to whole numbers, so that sums are exact.

    10⁻⁹ of the measure (nano-dollars), coarser only where a sum over the
    questions could pass 2^53.
    """
    largest = float(np.abs(costs).max()) * max(len(costs), 1) * 64
    return max(1e-9, float(10.0 ** np.ceil(np.log10(max(largest, 1e-300) / 2.0**53))))


def _utility(ground: Ground, router: str, scores: Floats, name: str, scaling: str) -> list[Metric]:
    scale = SCALINGS[scaling](ground.train.costs[name])
    expected = scale(ground.prices[name])
    paid = scale(ground.test.costs[name])
    can = ground.available(name)
    columns = np.stack(
        [
            realised(ground.test.labels, paid, choose(scores, can, expected, weight), weight)
            for weight in WEIGHTS
        ],
        axis=1,
    )
    replicates = ground.draws.means(columns)
    return [
        metric(
            router,
            f"utility[{name},{weight:g}]",
            ground.split,
            float(columns[:, k].mean()),
            replicates[:, k],
        )
        for k, weight in enumerate(WEIGHTS)
    ]


def _selection(ground: Ground, router: str, choice: Choice, profile: Floats) -> list[Metric]:
    """Entropy, collapse and routing outcomes of the choices."""
    n, m = ground.test.n_queries, ground.test.n_models
    chosen = np.zeros((n, m))
    chosen[np.arange(n), choice] = 1.0
    shares = ground.draws.means(chosen)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(shares > 0, shares * np.log(shares), 0.0)
    entropies = -logs.sum(axis=1) / (np.log(m) if m > 1 else 1.0)
    rows = [
        metric(
            router, "selection_entropy", ground.split, plateau.selection_entropy(profile), entropies
        ),
        metric(router, "top_share", ground.split, float(profile.max()), shares.max(axis=1)),
    ]
    if ground.measure is None:
        return rows
    kinds = plateau.outcomes(ground.test.labels, ground.test.costs[ground.measure], choice)
    held = (kinds[:, None] == np.arange(len(plateau.OUTCOMES))).astype(np.float64)
    replicates = ground.draws.means(held)
    return rows + [
        metric(router, f"outcome[{name}]", ground.split, float(held[:, k].mean()), replicates[:, k])
        for k, name in enumerate(plateau.OUTCOMES)
    ]


def mix_curve(ground: Ground, name: str) -> list[dict[str, Any]]:
    """Best random mixes of single models on test: the line a router has to be above."""
    cost = single_means(ground.test.costs[name])
    xs, ys = mix_frontier(cost, np.nan_to_num(single_means(ground.test.labels), nan=0.0))
    return curve_rows("random mix", "deferral", name, ground.split, xs, xs, ys, None)
