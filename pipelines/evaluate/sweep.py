"""One router's sweep over a cost measure: deferral curves, what is read off them, utility."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import (
    Floats,
    allocate,
    by_rows,
    mean_costs,
    side_by_side,
)
from routeyard.pipelines.evaluate.metrics.areas import (
    SCALINGS,
    WEIGHTS,
    audc,
    choose,
    curve_columns,
    pareto_points,
    peak_accuracy,
    qnc,
    realised,
)
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval
from routeyard.pipelines.evaluate.metrics.selection import (
    Choice,
    Choices,
    cost_penalised,
    mix_frontier,
    penalties,
    within_budget,
)
from routeyard.pipelines.evaluate.metrics.spec import (
    BestSingleCurve,
    EvaluationData,
    Routed,
    Swept,
    cheapest_and_dearest,
)
from routeyard.schemas.contracts import RESULTS
from routeyard.schemas.release import widened, wilson

# What an evaluation is made of: metric, curve, comparison, profile and OOD rows.


@dataclass(frozen=True)
class MetricRow:
    """One row of metrics.parquet; a null value comes with a reason, an AUROC with its failures.

    `n` counts the questions behind the value: where labels are missing, rows that compare with
    a single model, or are of one, are over the questions that it has a label for.
    """

    router: str
    metric: str
    split: str
    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    n: int | None = None


def counted(rows: Iterable[MetricRow], n: int) -> list[MetricRow]:
    """The rows, those that say nothing else as over n questions."""
    return [row if row.n is not None or row.value is None else replace(row, n=n) for row in rows]


def metric(
    router: str,
    name: str,
    split: str,
    value: float | None,
    replicates: Floats | None = None,
    reason: str = "undefined here",
    n: int | None = None,
) -> MetricRow:
    """Row from a value and its replicates; NaN becomes null with the reason."""
    if value is None or math.isnan(value):
        return MetricRow(router, name, split, None, reason=reason)
    low, high = (math.nan, math.nan) if replicates is None else interval(replicates, value=value)
    return MetricRow(
        router,
        name,
        split,
        float(value),
        None if math.isnan(low) else low,
        None if math.isnan(high) else high,
        n=n,
    )


def column_metric(
    router: str, name: str, split: str, column: Floats, replicates: Floats, reason: str
) -> MetricRow:
    """Row of the mean of a column over the questions where it is known; `n` counts them.

    Drawing again from answers that are all right, or all wrong, gives the same share each time:
    such an accuracy has Wilson's interval, since five of five questions prove little. Missing
    and undecided labels widen the interval of an accuracy (`widened`): they may all be wrong, or
    all right.
    """
    known = ~np.isnan(column)
    value = float(np.nanmean(column)) if known.any() else math.nan
    row = metric(router, name, split, value, replicates, reason, n := int(known.sum()))
    if name != "accuracy" or row.value is None:
        return row
    low, high = wilson(value * n, n)[1:] if value in (0.0, 1.0) else (row.low, row.high)
    if low is None or high is None:
        return row
    low, high = widened(low, high, n, len(column))
    return replace(row, low=low, high=high)


def mean_rows(
    draws: Draws,
    split: str,
    columns: Sequence[tuple[str, str, Floats]],
    why: str = "no such question in the split",
) -> list[MetricRow]:
    """Rows of (router, metric, column): each the mean of a column (n,), all resampled together."""
    if not columns:
        return []
    replicates = draws.means(side_by_side([column for _, _, column in columns]))
    return [
        column_metric(router, name, split, column, replicates[:, k], why)
        for k, (router, name, column) in enumerate(columns)
    ]


def table(rows: Iterable[Any], name: str) -> pa.Table:
    """A table of `RESULTS`, by its name, from dataclass rows or dictionaries."""
    plain = [row if isinstance(row, dict) else asdict(row) for row in rows]
    return pa.Table.from_pylist(plain, schema=RESULTS[name])


def curve_rows(
    router: str,
    curve: str,
    measure: str | None,
    split: str,
    setting: Floats,
    x: Floats,
    y: Floats,
    replicates: Floats | None,
) -> list[dict[str, Any]]:
    """Rows of one curve; the band is the 95 % interval of y at each point."""
    if replicates is None:
        low, high = np.full(len(y), np.nan), np.full(len(y), np.nan)
    else:
        low, high = np.quantile(replicates, [0.025, 0.975], axis=0)
    return [
        {
            "router": router,
            "curve": curve,
            "measure": measure,
            "split": split,
            "point": k,
            "setting": float(setting[k]),
            "x": float(x[k]),
            "y": float(y[k]),
            "low": None if math.isnan(low[k]) else float(low[k]),
            "high": None if math.isnan(high[k]) else float(high[k]),
        }
        for k in range(len(y))
    ]


#: Resamples behind the interval of a metric that is computed curve by curve.
CURVE_RESAMPLES = 500


def swept_choices(data: EvaluationData, scores: Floats, name: str, points: int) -> Choices:
    """(n, k) choice at every weight of cost, cheapest setting first."""
    can, price = data.available(name), data.prices[name]
    return cost_penalised(scores, can, price, penalties(points), data.order)


def joint(
    data: EvaluationData,
    scores: dict[str, Floats],
    points: int,
    decision_usd: Mapping[str, Floats] | None = None,
) -> tuple[dict[str, float], dict[str, tuple[Floats, Floats]]]:
    """measure → largest mean cost of any router's sweep, and points of their joint frontier."""
    largest: dict[str, float] = {}
    frontier: dict[str, tuple[Floats, Floats]] = {}
    for name in data.prices:
        paid, right = [], []
        for router, score in scores.items():
            choices = swept_choices(data, score, name, points)
            own = (decision_usd or {}).get(router) if name == "usd" else None
            spent = curve_columns(data.test.costs[name], choices).mean(axis=0)
            paid.append(spent if own is None else spent + own.mean())
            right.append(curve_columns(data.test.labels, choices).mean(axis=0))
        if paid:
            largest[name] = float(max(item.max() for item in paid))
            frontier[name] = pareto_points(np.concatenate(paid), np.concatenate(right))
    return largest, frontier


def _draw(
    routed: Routed, name: str, swept: Choices, bought: Choices, cheapest: int
) -> tuple[Floats, Floats, float, Floats, BestSingleCurve]:
    """Value and replicates of the columns of both curves; the cheapest single model's accuracy and
    its replicates; the sweep beside the most accurate single model."""
    data, own = routed.data, routed.decisions(name)
    y, cost, goal = data.test.labels, data.test.costs[name], data.best_on_test
    points = swept.shape[1]
    best = [data.own(goal), data.own(goal, name)]
    met = ~np.isnan(best[1])
    best[0] = np.where(met, best[0], np.nan)
    singles = np.stack([data.single_scores(cheapest), *best], axis=1)
    columns = allocate((len(y), 3 * points))
    curve_columns(y, swept, columns[:, :points])
    paid = curve_columns(cost, swept, columns[:, points : 2 * points])
    if own.any():
        paid += own[:, None]
    curve_columns(y, bought, columns[:, 2 * points :])
    unit = _exact_unit(paid)
    np.rint(np.divide(paid, unit, out=paid), out=paid)
    # Labels apart from costs: sums of whole numbers are the faster ones.
    parts = [columns[:, k * points : (k + 1) * points] for k in range(3)]
    replicates = np.concatenate([data.draws.means(part) for part in parts], axis=1)
    single = data.draws.means(singles)
    replicates[:, points : 2 * points] *= unit
    value = columns.mean(axis=0)
    value[points : 2 * points] *= unit
    curve, drawn = value[: 2 * points], replicates[:, : 2 * points]
    if not met.all():
        columns[~met] = 0.0
        with np.errstate(invalid="ignore", divide="ignore"):
            curve = columns[:, : 2 * points].sum(axis=0) / met.sum()
            held = data.draws.sums(met[:, None].astype(np.float64))
            drawn = data.draws.sums(columns[:, : 2 * points]) / held
        curve[points:] *= unit
        drawn[:, points:] *= unit
    first = mean_costs(singles)
    against = BestSingleCurve(
        curve[points:], curve[:points], drawn[:, points:], drawn[:, :points],
        float(first[1]), float(first[2]), single[:, 1], single[:, 2], int(met.sum()),
    )  # fmt: skip
    return value, replicates, float(first[0]), single[:, 0], against


def deferral(
    routed: Routed, name: str, points: int
) -> tuple[list[MetricRow], list[dict[str, Any]], tuple[float, Floats], Swept, Choices]:
    """Curves against realised mean cost and against a budget, with what is read off them.

    Returns:
        Rows of metrics and of curves; (value, replicates) of the AUDC; the curve as metrics see
        it; (n, k) choice at every setting.
    """
    data, router, split = routed.data, routed.router, routed.data.split
    cheapest, low, high = cheapest_and_dearest(data, name)
    budgets = np.linspace(low, high, points)
    swept = swept_choices(data, routed.scores, name, points)
    can, price = data.available(name), data.prices[name]
    left = budgets - float(np.mean(routed.decisions(name)))
    bought = within_budget(routed.scores, can, price, left, data.order)
    value, replicates, first, firsts, item = _draw(routed, name, swept, bought, cheapest)
    acc, paid, within = (slice(k * points, (k + 1) * points) for k in range(3))
    area = float(audc(value[paid], value[acc], low, high, first))
    areas = audc(replicates[:, paid], replicates[:, acc], low, high, firsts)
    flat = np.broadcast_to(budgets, (len(replicates), points))
    flat_area = float(audc(budgets, value[within], low, high, first))
    flat_areas = audc(flat, replicates[:, within], low, high, firsts)
    neutral = float(qnc(item.cost, item.accuracy, item.best, item.best_cost))
    neutrals = qnc(item.costs, item.accuracies, item.bests, item.best_costs)
    peak, peaks = float(peak_accuracy(value[acc])), peak_accuracy(replicates[:, acc])
    same = (
        "all single models cost the same, so there is no trade-off"
        if not high > low
        else "the cheapest single model has no label in the split"
    )
    never = (
        "the curve never matches the most accurate single model"
        if item.n
        else "the most accurate single model has no answer with a label and a known cost"
    )
    dearest, dearests = float(value[paid][-1]), replicates[:, paid][:, -1]
    rows = [
        metric(router, f"audc[{name}]", split, area, areas, same),
        metric(router, f"audc_budget[{name}]", split, flat_area, flat_areas, same),
        metric(router, f"peak_accuracy[{name}]", split, peak, peaks),
        metric(router, f"qnc[{name}]", split, neutral, neutrals, never, item.n),
        metric(router, f"mean_cost[{name}]", split, dearest, dearests),
    ]
    weights = penalties(points)
    curves = curve_rows(
        router, "deferral", name, split, weights, value[paid], value[acc], replicates[:, acc]
    )
    curves += curve_rows(
        router, "budget", name, split, budgets, budgets, value[within], replicates[:, within]
    )
    some = slice(0, CURVE_RESAMPLES)
    item = replace(
        item, costs=item.costs[some], accuracies=item.accuracies[some],
        bests=item.bests[some], best_costs=item.best_costs[some],
    )  # fmt: skip
    view = Swept(
        routed, name, value[paid], value[acc], replicates[some, paid], replicates[some, acc],
        low, high, first, firsts[some], item,
    )  # fmt: skip
    return rows, curves, (area, areas), view, swept


def at_budget(routed: Routed, points: int) -> Choice | None:
    """(n,) choices of the last setting whose mean cost is within the best single model's.

    All routers are held to the same money, over the questions on which that model has a
    label and a known cost (None without any); where even the cheapest setting costs more,
    that one is taken.
    """
    data, name = routed.data, routed.data.measure or ""
    goal, cost = data.best_on_test, data.test.costs[name]
    met = ~np.isnan(data.own(goal, name))
    if not met.any():
        return None
    swept = swept_choices(data, routed.scores, name, points)
    every = curve_columns(cost, swept)
    if (own := routed.decisions(name)).any():
        every = every + own[:, None]
    paid = (every if met.all() else every[met]).mean(axis=0)
    budget = float(data.own_means(name)[goal]) * (1 + 1e-12)
    within = np.flatnonzero(paid <= budget)
    return np.asarray(swept[:, within[-1] if len(within) else 0], dtype=np.int64)


def _exact_unit(costs: Floats) -> float:
    """Unit in which costs are rounded to whole numbers, so that sums are exact.

    10⁻⁹ of the measure (nano-dollars), coarser only where a sum over the
    questions could pass 2^53.
    """
    largest = max(float(costs.max()), -float(costs.min())) * max(len(costs), 1) * 64
    return max(1e-9, float(10.0 ** np.ceil(np.log10(max(largest, 1e-300) / 2.0**53))))


def utilities(routed: Routed, name: str, scaling: str) -> list[MetricRow]:
    """Utility at every weight, chosen by mean train costs and by what each answer costs.

    Scores that are no chances (ratings of about 1,000, places in an order) cannot be weighed
    against a cost from 0 to 1: their utility exists where cost has no weight, and is null
    elsewhere.
    """
    data, router, scores = routed.data, routed.router, routed.scores
    scale = SCALINGS[scaling](data.train.costs[name])
    costs, own = data.test.costs[name], routed.decisions(name)
    paid = np.asarray(by_rows(scale, costs + own[:, None] if own.any() else costs))
    can = data.available(name)
    spent = np.asarray(by_rows(lambda known, cost: np.where(known, cost, 0.0), can, paid))
    beyond = routed.no_chances
    why = f"the scores {beyond}, so they are no probabilities to weigh against cost"
    rows = []
    for called, expected in (
        ("utility", scale(data.prices[name])),
        ("utility_per_query", spent),
    ):
        if not routed.shared.wants(called):
            continue
        columns = np.stack(
            [
                realised(
                    data.test.labels,
                    paid,
                    choose(scores, can, expected, weight, data.order),
                    weight,
                )
                for weight in WEIGHTS
            ],
            axis=1,
        )
        drawn = data.draws.means(columns)
        for k, weight in enumerate(WEIGHTS):
            value = None if beyond and weight else float(columns[:, k].mean())
            title = f"{called}[{name},{weight:g}]"
            rows.append(metric(router, title, data.split, value, drawn[:, k], why))
    return rows


def mix_curve(data: EvaluationData, name: str) -> list[dict[str, Any]]:
    """Best random mixes of single models on test: the line a router has to be above."""
    xs, ys = mix_frontier(data.single_means(name), data.single_means())
    return curve_rows("random mix", "deferral", name, data.split, xs, xs, ys, None)
