"""The routability certificate: can this pool and these queries tell routers apart?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import BadInput
from pipelines.evaluate.baselines import (
    best_single,
    mix_weights,
    query_oracle,
    random_mean,
    task_oracle,
)
from pipelines.evaluate.bootstrap import Draws, interval
from pipelines.evaluate.collapse import REFERENCE, Collapse, reference_collapse
from pipelines.evaluate.core import Core
from pipelines.evaluate.headroom import (
    agreement,
    corrected_oracle,
    crossfitted_task_oracle,
    dominated,
    resolvable_difference,
    specialist_stability,
)
from pipelines.evaluate.plateau import hard_subset, right, solvable
from pipelines.evaluate.selection import at_choice, mean_costs

Floats = NDArray[np.float64]

RULE = (
    "gap = accuracy of the per-query oracle minus that of the best single model (corrected for "
    "sampling luck where responses were sampled more than once). 'not routable': the gap's lower "
    "limit is not above zero, or the gap is smaller than the difference the test questions can "
    "resolve. 'routable': otherwise, and at least one reference router beats the best single "
    "model (Holm-corrected p < 0.05 and a 95 % interval above zero). 'headroom not reached': "
    "otherwise, and no reference router does. 'headroom only': no reference router could be tried."
)


@dataclass(frozen=True)
class Figure:
    """A value with its 95 % interval; null with a reason where it does not exist."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ModelFigure:
    """One model: accuracy over the queries it has a label for, and mean cost if known."""

    model_id: str
    accuracy: float | None
    low: float | None
    high: float | None
    n_labels: int
    mean_cost: float | None
    dominated: bool | None


@dataclass(frozen=True)
class Certificate:
    """JSON-ready (`to_json`). Accuracies and gaps are shares, not per cent.

    `figures` holds, by name: best_single, uniform_random, cost_matched_mix,
    task_oracle, task_oracle_crossfitted, query_oracle, query_oracle_corrected,
    the gaps gap_task_oracle, gap_query_oracle, gap_query_oracle_corrected (all
    against the best single model) and gap_mix (oracle against the mix),
    specialist_stability, hard_share, unsolved_share, all_right_share,
    best_covers, dominated_share, redundancy, contested_share,
    unreadable_share and resolvable_difference.
    """

    n_queries: int
    n_test: int | None
    n_models: int
    coverage: float
    scheme: str | None
    measure: str | None
    resamples: int
    seed: int
    clustered_by: str | None
    best_single: str
    figures: Mapping[str, Figure]
    models: Sequence[ModelFigure]
    routers: Sequence[Collapse]
    routers_reason: str | None
    verdict: str
    words: str
    rule: str = RULE

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers; keys in a fixed order."""
        return {"format": 1, **asdict(self)}


def certify(
    core: Core,
    *,
    scheme: str | None = None,
    measure: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    routers: Sequence[str] = REFERENCE,
) -> Certificate:
    """Certificate of a release or of staged tables.

    Figures of the pool are over all queries with a label; the routers and the
    resolvable difference are of the test questions of `scheme`.

    Args:
        scheme: split scheme; by default `dense`, else the first in order.
        measure: cost measure; by default the first known of usd, tokens,
            latency, params.
        cluster: `duplicates` or `task` to resample whole groups.
        routers: reference routers to try; none when empty.

    Raises:
        BadInput: no query has a label, or a name is unknown.
    """
    usable = np.flatnonzero(~np.all(np.isnan(core.labels), axis=1))
    if not len(usable):
        raise BadInput(
            "no query has a label, so there is nothing to certify",
            next_step="label the responses first (`routeyard relabel`)",
        )
    core = core.take(usable)
    measure = _measure(core, measure)
    scheme = None if scheme is None and not core.splits else default_scheme(core, scheme)
    cost = core.costs[measure] if measure else None
    price = mean_costs(cost) if cost is not None else None
    single = best_single(core.labels, price)
    figures, models = _pool_figures(
        core, cost, single, Draws(core.n_queries, resamples, seed, _clusters(core, cluster))
    )
    test = _test(core, scheme)
    resolvable = resolvable_difference((test or core).labels)
    figures["resolvable_difference"] = (
        Figure(None, reason="fewer than two models share questions")
        if resolvable is None
        else Figure(resolvable)
    )
    tried, why_not = _try_routers(core, scheme, routers, resamples, seed)
    verdict, words = _verdict(core, figures, tried, why_not, single)
    return Certificate(
        n_queries=core.n_queries,
        n_test=None if test is None else test.n_queries,
        n_models=core.n_models,
        coverage=core.coverage,
        scheme=scheme,
        measure=measure,
        resamples=resamples,
        seed=seed,
        clustered_by=cluster,
        best_single=core.model_ids[single],
        figures=figures,
        models=models,
        routers=tried,
        routers_reason=why_not,
        verdict=verdict,
        words=words,
    )


def _measure(core: Core, asked: str | None) -> str | None:
    if asked is not None and asked not in core.costs:
        raise BadInput(
            f"the release knows no cost measure {asked!r} for every model",
            next_step=f"known: {', '.join(core.costs) or 'none'}",
        )
    known = [name for name in ("usd", "tokens", "latency", "params") if name in core.costs]
    return asked or (known[0] if known else None)


def default_scheme(core: Core, asked: str | None = None) -> str:
    """The scheme asked for, else `dense`, else the first in order.

    Raises:
        BadInput: it does not exist, its test is empty, or there is no scheme.
    """
    if not core.splits:
        raise BadInput(
            "the release has no split into train and test questions",
            next_step="give the recipe a `split` section",
        )
    chosen = asked or ("dense" if "dense" in core.splits else min(core.splits))
    if asked is not None:
        core.rows(asked, "test")
    return chosen


def _clusters(core: Core, cluster: str | None) -> NDArray[np.int64] | None:
    if cluster is None:
        return None
    if cluster == "duplicates":
        return core.groups
    if cluster == "task":
        return np.unique(core.tasks, return_inverse=True)[1].astype(np.int64)
    raise BadInput(f"cannot cluster by {cluster!r}", next_step="known: duplicates, task")


def _test(core: Core, scheme: str | None) -> Core | None:
    if scheme is None:
        return None
    rows = np.flatnonzero(core.splits[scheme] == "test")
    return core.take(rows) if len(rows) else None


def _pool_figures(
    core: Core, cost: Floats | None, single: int, draws: Draws
) -> tuple[dict[str, Figure], list[ModelFigure]]:
    y = core.labels
    oracle = query_oracle(y, cost)
    top = at_choice(y, oracle)
    per_task = at_choice(y, task_oracle(y, core.tasks))
    can = solvable(y)
    n_right, n_known = right(y).sum(axis=1), (~np.isnan(y)).sum(axis=1)
    reasons: dict[str, str] = {}
    columns: dict[str, Floats] = {
        "best_single": y[:, single],
        "uniform_random": random_mean(y),
        "task_oracle": per_task,
        "task_oracle_crossfitted": crossfitted_task_oracle(y, core.tasks, seed=draws.seed),
        "query_oracle": top,
        "gap_task_oracle": per_task - y[:, single],
        "gap_query_oracle": top - y[:, single],
        "hard_share": np.where(can, hard_subset(y, single).astype(np.float64), np.nan),
        "unsolved_share": (~can).astype(np.float64),
        "all_right_share": (n_right == n_known).astype(np.float64),
        "best_covers": np.where(can & ~np.isnan(y[:, single]), right(y)[:, single], np.nan),
        "redundancy": agreement(y),
    }
    accuracy = mean_costs(y)
    if cost is None:
        for name in ("cost_matched_mix", "gap_mix"):
            reasons[name] = "no cost measure is known for every model of the pool"
    else:
        # At the oracle's own mean cost: what the same money buys without looking at queries.
        spent = float(np.nanmean(at_choice(cost, oracle)))
        weights = mix_weights(mean_costs(cost), np.nan_to_num(accuracy, nan=0.0), spent)
        known = ~np.isnan(y) * weights
        with np.errstate(invalid="ignore", divide="ignore"):
            mixed = (np.where(np.isnan(y), 0.0, y) @ weights) / known.sum(axis=1)
        columns["cost_matched_mix"], columns["gap_mix"] = mixed, top - mixed
    if core.samples is None:
        for name in ("query_oracle_corrected", "gap_query_oracle_corrected"):
            reasons[name] = (
                "every response was sampled once, so luck cannot be told from skill: "
                "the oracle is an upper limit"
            )
    else:
        corrected = corrected_oracle(core.samples, seed=draws.seed)
        columns["query_oracle_corrected"] = corrected
        columns["gap_query_oracle_corrected"] = corrected - y[:, single]
    names = list(columns)
    values = np.concatenate([np.stack([columns[name] for name in names], axis=1), y], axis=1)
    replicates = draws.means(values)
    figures: dict[str, Figure] = {}
    for k, name in enumerate(names):
        figures[name] = _figure(columns[name], replicates[:, k], "no query has a value")
    figures.update({name: Figure(None, reason=reason) for name, reason in reasons.items()})
    singles = replicates[:, len(names) :]
    off = _dominance(cost, accuracy, singles, draws, figures)
    figures["specialist_stability"] = _stability(core)
    figures["contested_share"] = _share(core.contested)
    figures["unreadable_share"] = _share(core.unreadable)
    price = mean_costs(cost) if cost is not None else None
    models = []
    for k, name in enumerate(core.model_ids):
        shown = _figure(y[:, k], singles[:, k], "no label")
        models.append(
            ModelFigure(
                model_id=name,
                accuracy=shown.value,
                low=shown.low,
                high=shown.high,
                n_labels=int((~np.isnan(y[:, k])).sum()),
                mean_cost=None if price is None else float(price[k]),
                dominated=None if off is None else bool(off[k]),
            )
        )
    return figures, models


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
    cost: Floats | None, accuracy: Floats, singles: Floats, draws: Draws, figures: dict[str, Figure]
) -> NDArray[np.bool_] | None:
    """Share of models that another beats in accuracy at no more cost."""
    if cost is None:
        figures["dominated_share"] = Figure(
            None, reason="no cost measure is known for every model of the pool"
        )
        return None
    off = dominated(mean_costs(cost), np.nan_to_num(accuracy, nan=0.0))
    shares = dominated(draws.means(cost), np.nan_to_num(singles, nan=0.0)).mean(axis=-1)
    low, high = interval(shares)
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


def _try_routers(
    core: Core, scheme: str | None, routers: Sequence[str], resamples: int, seed: int
) -> tuple[list[Collapse], str | None]:
    if not routers:
        return [], "no reference router was asked for"
    if core.embeddings is None:
        return [], "the questions have no embeddings"
    if scheme is None:
        return [], "there is no split into train and test questions"
    missing = [s for s in ("train", "test") if not np.any(core.splits[scheme] == s)]
    if missing:
        return [], f"split scheme {scheme!r} has no {' and no '.join(missing)} questions"
    return (
        reference_collapse(core, scheme, routers=routers, resamples=resamples, seed=seed),
        None,
    )


def _verdict(
    core: Core,
    figures: Mapping[str, Figure],
    tried: Sequence[Collapse],
    why_not: str | None,
    single: int,
) -> tuple[str, str]:
    corrected = figures["gap_query_oracle_corrected"]
    gap = figures["gap_query_oracle"] if corrected.value is None else corrected
    resolvable = figures["resolvable_difference"].value
    value, low = gap.value or 0.0, gap.low or 0.0
    limit = resolvable if resolvable is not None else math.inf
    start = (
        f"The per-query oracle is {_points(value)} above the best single model "
        f"({core.model_ids[single]}), interval {_points(low)} to {_points(gap.high or 0.0)}; "
        + (
            f"the test questions can resolve {_points(limit)}."
            if math.isfinite(limit)
            else "what the test questions can resolve is unknown."
        )
    )
    if corrected.value is None:
        start += " Each response was sampled once, so part of that gap may be luck."
    if low <= 0 or value < limit:
        return "not routable", start + " Differences between routers cannot be told apart here."
    if not tried:
        return "headroom only", f"{start} No reference router was tried: {why_not}."
    winners = [r for r in tried if r.gain_low > 0 and r.p_adjusted < 0.05]
    top = max(tried, key=lambda r: (r.gain, r.router))
    shown = (
        f"{top.router} gains {_points(top.gain)} "
        f"({_points(top.gain_low)} to {_points(top.gain_high)})"
    )
    if winners:
        names = ", ".join(sorted(r.router for r in winners))
        return "routable", f"{start} Reference routers beat that model: {names}; {shown}."
    return (
        "headroom not reached",
        f"{start} No reference router gains significantly; the best, {shown}.",
    )


def _points(share: float) -> str:
    return f"{100 * share:.2f} points"
