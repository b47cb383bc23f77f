"""Figures of the pool: single models, oracles, random mixes, redundancy, each with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats
from routeyard.pipelines.evaluate.certificate.possible_gain import (
    agreement,
    chance_corrected_oracle,
    corrected_oracle,
    crossfitted_task_oracle,
    dominated,
    specialist_stability,
)
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.memmap import allocate, take_rows
from routeyard.pipelines.matrix.ranking import evened, levels, mean_costs, ranked
from routeyard.pipelines.matrix.row_blocks import by_rows, known, side_by_side
from routeyard.pipelines.metrics.baselines import (
    alone,
    mix_weights,
    query_oracle,
    random_mean,
    task_oracle,
)
from routeyard.pipelines.metrics.bootstrap import Draws, interval
from routeyard.pipelines.metrics.plateau import hard_subset, right, solvable
from routeyard.pipelines.metrics.selection import Choice, at_choice
from routeyard.schemas.intervals import widened

#: (lower, upper): what no release can have the other way round.
IN_ORDER = (
    ("best_single", "task_oracle"),
    ("task_oracle", "query_oracle"),
    ("query_oracle_chance_corrected", "query_oracle"),
    ("uniform_random", "query_oracle"),
    ("cost_matched_mix", "query_oracle"),
)


#: Figures that need the cost of every labelled answer.
OF_COST = ("cost_matched_mix", "gap_mix", "dominated_share")


@dataclass(frozen=True)
class Figure:
    """A value with its 95 % interval; null with a reason where it does not exist."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ModelFigure:
    """One model: accuracy over the queries it has a label for, with an interval that missing and
    undecided labels widen (`schemas.intervals.widened`), and the mean cost of its answers; null
    where the cost of any labelled answer of the pool is unknown."""

    model_id: str
    accuracy: float | None
    low: float | None
    high: float | None
    n_labels: int
    mean_cost: float | None
    dominated: bool | None


def pool_figures(
    core: Core, cost: Floats | None, single: int, draws: Draws, no_cost: str
) -> tuple[dict[str, Figure], list[ModelFigure]]:
    """Figures by name, and those of every model.

    Every figure is over the questions on which the best single model has a
    label: it, the oracles and the mix are only comparable on the same questions.
    A model's own accuracy is over all the questions that it has a label for.

    Args:
        cost: (n, m) of the certificate's measure, known of every labelled answer, or None.
        single: position of the best single model.
        no_cost: why it is missing.
    """
    y = core.labels
    compared = np.flatnonzero(~np.isnan(y[:, single]))
    some = core.take(compared)
    paid = None if cost is None else cost if some is core else take_rows(cost, compared)
    columns, reasons = _columns(some, paid, single, draws.seed)
    names = list(columns)
    wide = allocate((core.n_queries, len(names)), fill=np.nan)
    wide[compared] = side_by_side([columns[name] for name in names])
    replicates = draws.means(by_rows(lambda *part: np.concatenate(part, axis=1), wide, y))
    figures: dict[str, Figure] = {}
    for k, name in enumerate(names):
        figures[name] = _figure(wide[:, k], replicates[:, k], "no query has a value")
    if cost is None:
        reasons |= dict.fromkeys(OF_COST, no_cost)
    figures.update({name: Figure(None, reason=reason) for name, reason in reasons.items()})
    _agree(figures)
    singles = replicates[:, len(names) :]
    off = _dominance(core, cost, draws, figures)
    figures["specialist_stability"] = _stability(core)
    figures["contested_share"] = _share(core.contested)
    figures["unreadable_share"] = _share(core.unreadable)
    return figures, _models(core, cost, singles, off)


def _agree(figures: dict[str, Figure]) -> None:
    """Figures over the same questions cannot contradict each other; if they do, it is our fault."""
    value = {name: one.value for name, one in figures.items()}
    for lower, upper in IN_ORDER:
        low, high = value[lower], value[upper]
        if low is not None and high is not None and low > high + 1e-9:
            raise AssertionError(f"{lower} {low} is above {upper} {high}")


def _columns(
    core: Core, cost: Floats | None, single: int, seed: int
) -> tuple[dict[str, Floats], dict[str, str]]:
    """(n,) columns whose means are figures, and why the others are absent."""
    y, decided = core.labels, core.decided
    oracle = query_oracle(y, cost)
    top = at_choice(y, oracle)
    # The best single model first: it has a label on all of these questions.
    order = np.array([single, *(k for k in ranked(y).tolist() if k != single)])
    per_task = at_choice(y, task_oracle(y, core.tasks, order=order))
    can = solvable(decided)
    all_right = by_rows(lambda d, v: right(d).sum(axis=1) == (~np.isnan(v)).sum(axis=1), decided, y)
    covered = by_rows(lambda part: right(part)[:, single], decided)
    by_chance = chance_corrected_oracle(y, decided, core.tasks, core.chance)
    columns: dict[str, Floats] = {
        "best_single": y[:, single],
        "uniform_random": random_mean(y),
        "task_oracle": per_task,
        "task_oracle_crossfitted": crossfitted_task_oracle(y, core.tasks, seed=seed),
        "query_oracle": top,
        "query_oracle_chance_corrected": by_chance,
        "gap_task_oracle": per_task - y[:, single],
        "gap_query_oracle": top - y[:, single],
        "gap_query_oracle_chance_corrected": by_chance - y[:, single],
        "hard_share": np.where(can, hard_subset(decided, single).astype(np.float64), np.nan),
        "unsolved_share": (~can).astype(np.float64),
        "all_right_share": all_right.astype(np.float64),
        "best_covers": np.where(can & ~np.isnan(y[:, single]), covered, np.nan),
        "redundancy": agreement(decided),
    }
    _mix(core, cost, oracle, top, columns)
    return columns, _noise(core, single, seed, columns)


def _mix(
    core: Core, cost: Floats | None, oracle: Choice, top: Floats, columns: dict[str, Floats]
) -> None:
    """At the oracle's own mean cost: what the same money buys without looking at queries."""
    if cost is None:
        return
    y = core.labels
    spent = float(np.nanmean(at_choice(cost, oracle)))
    who = alone(known(y), ranked(y))
    singles = at_choice(y, who)
    weights = mix_weights(mean_costs(at_choice(cost, who)), singles.mean(axis=0), spent)
    mixed = singles @ weights
    columns["cost_matched_mix"], columns["gap_mix"] = mixed, top - mixed


def _noise(core: Core, single: int, seed: int, columns: dict[str, Floats]) -> dict[str, str]:
    """The oracle corrected for sampling noise, where there are samples."""
    if core.samples is None:
        why = (
            "every response was sampled once, so sampling noise is unknown: "
            "the oracle is an upper limit"
        )
        return {"query_oracle_corrected": why, "gap_query_oracle_corrected": why}
    corrected = corrected_oracle(core.samples, seed=seed)
    columns["query_oracle_corrected"] = corrected
    columns["gap_query_oracle_corrected"] = corrected - core.labels[:, single]
    return {}


def _models(
    core: Core, cost: Floats | None, singles: Floats, off: Bools | None
) -> list[ModelFigure]:
    y = core.labels
    price = mean_costs(cost) if cost is not None else None
    models = []
    for k, name in enumerate(core.model_ids):
        found = _figure(y[:, k], singles[:, k], "no label")
        cost_of = None if price is None else float(price[k])
        dominated_by = None if off is None else bool(off[k])
        n = int((~np.isnan(y[:, k])).sum())
        low, high = found.low, found.high
        if low is not None and high is not None:
            low, high = widened(low, high, n, len(y))
        accuracy = (found.value, low, high)
        models.append(ModelFigure(name, *accuracy, n, cost_of, dominated_by))
    return models


def _figure(column: Floats, replicates: Floats, reason: str) -> Figure:
    if np.isnan(column).all():
        return Figure(None, reason=reason)
    low, high = interval(replicates)
    return Figure(
        float(np.nanmean(column)),
        None if math.isnan(low) else low,
        None if math.isnan(high) else high,
    )


def _dominance(
    core: Core, cost: Floats | None, draws: Draws, figures: dict[str, Figure]
) -> Bools | None:
    """Share of models that another beats in accuracy at no more cost, on the same questions."""
    if cost is None:
        return None
    labels = core.labels
    off = dominated(levels(cost), np.nan_to_num(levels(labels), nan=0.0))
    accuracy = np.nan_to_num(draws.means(evened(labels)), nan=0.0)
    shares = dominated(draws.means(evened(cost)), accuracy).mean(axis=-1)
    low, high = interval(shares, value=float(off.mean()))
    figures["dominated_share"] = Figure(float(off.mean()), low, high)
    return off


def _stability(core: Core) -> Figure:
    found = specialist_stability(core.labels, core.tasks)
    if found is None:
        return Figure(None, reason="needs two tasks with at least four queries and two models")
    # The interval is over random halvings of the same queries.
    low, high = interval(found)
    return Figure(float(found.mean()), low, high)


def _share(value: float | None) -> Figure:
    return Figure(None, reason="no label is decided") if value is None else Figure(value)
