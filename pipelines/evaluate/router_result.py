"""One router on its data: every metric of a whole pool with its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Floats, ratio
from routeyard.pipelines.evaluate.cost_result import (
    CostResult,
    over_costs,
    registered,
    routed_of,
)
from routeyard.pipelines.evaluate.rows import MetricRow, column_metric, metric
from routeyard.pipelines.matrix.memmap import allocate
from routeyard.pipelines.matrix.row_blocks import side_by_side
from routeyard.pipelines.metrics import plateau
from routeyard.pipelines.metrics.baselines import query_oracle
from routeyard.pipelines.metrics.evaluation_data import EvaluationData
from routeyard.pipelines.metrics.quality import wanted
from routeyard.pipelines.metrics.selection import Choice, at_choice
from routeyard.pipelines.metrics.spec import SharedFacts


@dataclass(frozen=True, eq=False)
class RouterResult:
    """Rows of one router, and what comparisons need of it.

    Attributes:
        choice: (n,) model asked without regard to cost.
        wanted: (n,) the same if none were left out for want of a label.
        accuracy: (resamples,) replicates of its accuracy.
        costs: what needs costs; its rows are in `metrics` too.
    """

    router: str
    metrics: list[MetricRow]
    profile: Floats
    choice: Choice
    wanted: Choice
    accuracy: Floats
    costs: CostResult

    @property
    def curves(self) -> list[dict[str, Any]]:
        return self.costs.curves


def measure(
    data: EvaluationData,
    router: str,
    scores: Floats,
    *,
    points: int = 100,
    scaling: str = "min-max",
    shared: SharedFacts | None = None,
) -> RouterResult:
    """All metrics of a router that gives scores (n_test, m).

    Args:
        points: settings of each deferral curve.
        scaling: how utility scales costs, a key of `SCALINGS`.
        shared: what all routers of the evaluation share.
    """
    routed = routed_of(data, router, scores, shared)
    hit = at_choice(data.test.labels, routed.choice)
    rows, replicates = _at_any_price(data, router, routed.choice, hit)
    rows += registered(routed, "router", routed)
    rows = _widened(rows)
    costs = over_costs(routed, points=points, scaling=scaling)
    profile = plateau.selection_profile(routed.choice, data.test.n_models)
    chosen = _selection(data, router, routed.choice, profile)
    rows += [*costs.metrics, *chosen, *costs.budget]
    unconstrained = routed.once(wanted)
    return RouterResult(router, rows, profile, routed.choice, unconstrained, replicates, costs)


def _widened(rows: list[MetricRow]) -> list[MetricRow]:
    """The rows, with an interval of the accuracy that holds those of its floor and its ceiling:
    a model whose labels are missing or undecided may be wrong there, or right."""
    by_name = {row.metric: row for row in rows}
    own, ends = by_name["accuracy"], [by_name.get(f"accuracy_{e}") for e in ("floor", "ceiling")]
    lows = [row.low for row in (own, *ends) if row is not None and row.low is not None]
    highs = [row.high for row in (own, *ends) if row is not None and row.high is not None]
    if not lows or not highs:
        return rows
    wide = replace(own, low=min(lows), high=max(highs))
    return [wide if row is own else row for row in rows]


def _at_any_price(
    data: EvaluationData, router: str, choice: Choice, hit: Floats
) -> tuple[list[MetricRow], Floats]:
    """Accuracy, gap to the oracle and exchange with the best single model.

    Rows that compare with that model are over the questions that it has a label for.
    """
    y, split = data.test.labels, data.split
    top = at_choice(y, query_oracle(y))
    decided = data.test.decided
    single = data.own(data.single)
    met = ~np.isnan(single)
    right = plateau.right(at_choice(decided, choice))
    other = plateau.right(decided[:, data.single])
    hard = plateau.hard_subset(decided, data.best_on_test)
    easy = plateau.solvable(decided) & ~hard
    where = {
        "accuracy": hit,
        "gap_to_oracle": top - hit,
        "gap_to_oracle_hard": np.where(hard, top - hit, np.nan),
        "gap_to_oracle_easy": np.where(easy, top - hit, np.nan),
        "gain_over_best_single": hit - single,
        "disagreement_with_best_single": np.where(met, choice != data.single, np.nan),
        "won_from_best_single": np.where(met, right & ~other, np.nan),
        "lost_to_best_single": np.where(met, other & ~right, np.nan),
        "changed_against_best_single": np.where(met, right != other, np.nan),
    }
    columns = side_by_side(list(where.values()))
    replicates = data.draws.means(columns)
    why = "no such question in the split"
    rows = [
        column_metric(router, name, split, column, replicates[:, k], why)
        for k, (name, column) in enumerate(zip(where, columns.T, strict=True))
    ]
    gap = plateau.oracle_gap(y, choice, data.best_on_test, decided)
    # (gap on hard questions)/(gap on all solvable ones), in every resample.
    parts = np.stack([np.where(hard, top - hit, 0.0), np.where(hard | easy, top - hit, 0.0)], 1)
    sums = data.draws.sums(parts)
    share = ratio(sums[:, 0], sums[:, 1])
    why, n = "there is no gap to the oracle", int((hard | easy).sum())
    explained = gap.share_explained
    rows.append(metric(router, "hard_share_of_gap", split, explained, share, why, n))
    return rows, replicates[:, 0]


def _selection(
    data: EvaluationData, router: str, choice: Choice, profile: Floats
) -> list[MetricRow]:
    """Entropy, collapse and routing outcomes of the choices."""
    n, m = data.test.n_queries, data.test.n_models
    chosen = allocate((n, m), fill=0.0)
    chosen[np.arange(n), choice] = 1.0
    shares = data.draws.means(chosen)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(shares > 0, shares * np.log(shares), 0.0)
    entropies = -logs.sum(axis=1) / (np.log(m) if m > 1 else 1.0)
    rows = [
        metric(
            router, "selection_entropy", data.split, plateau.selection_entropy(profile), entropies
        ),
        metric(router, "top_share", data.split, float(profile.max()), shares.max(axis=1)),
    ]
    if data.measure is None:
        return rows
    cost = data.test.costs[data.measure]
    for called, published in (("outcome", False), ("outcome_as_published", True)):
        kinds = plateau.outcomes(data.test.decided, cost, choice, as_published=published)
        held = (kinds[:, None] == np.arange(len(plateau.OUTCOMES))).astype(np.float64)
        drawn = data.draws.means(held)
        rows += [
            metric(router, f"{called}[{name}]", data.split, float(held[:, k].mean()), drawn[:, k])
            for k, name in enumerate(plateau.OUTCOMES)
        ]
    return rows
