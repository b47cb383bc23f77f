"""One evaluation: routers and references on the test questions of one split scheme."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.errors import BadInput
from pipelines.evaluate.baselines import query_oracle, random_mean, single_means, task_oracle
from pipelines.evaluate.bootstrap import Draws
from pipelines.evaluate.compare import Comparison, compare, compare_matched, ranking
from pipelines.evaluate.core import Core
from pipelines.evaluate.ground import Ground, prepare
from pipelines.evaluate.measured import Measured, measure, mix_curve
from pipelines.evaluate.ood import averages, held_out_groups, unseen_models
from pipelines.evaluate.pairs import Pair, Traded, default_pair, pair_of, trade
from pipelines.evaluate.plateau import exchange
from pipelines.evaluate.rows import (
    COMPARISONS_SCHEMA,
    CURVES_SCHEMA,
    EXCHANGES_SCHEMA,
    METRICS_SCHEMA,
    PROFILES_SCHEMA,
    Metric,
    metric,
    table,
)
from pipelines.evaluate.selection import at_choice, best
from pipelines.evaluate.significance import seed_spread
from pipelines.evaluate.tradeoff import Bands
from pipelines.routers.base import Queries, Router

Floats = NDArray[np.float64]

#: Makes a fresh router for a seed.
Maker = Callable[[int], Router]

#: Reference names that no router may take.
REFERENCES = ("oracle", "task oracle", "best single")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Tables of one evaluation, and figures for the report.

    Attributes:
        metrics: router, metric, split, value, low, high, reason.
        curves: points of deferral, budget and trade-off curves with bands.
        comparisons: all pairs, with p-values corrected for their number.
        profiles: share of questions each router sends to each model.
        exchanges: disagreement and exchanged wins of every pair of routers.
        ood: one row per router and held-out group; None when not asked for.
        choices: query_id, router, model_id, score: what each router chose.
        ranking: routers by accuracy with the places that remain open.
        facts: JSON-ready words about what was done.
    """

    metrics: pa.Table
    curves: pa.Table
    comparisons: pa.Table
    profiles: pa.Table
    exchanges: pa.Table
    ood: pa.Table | None
    choices: pa.Table
    ranking: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any]


def evaluate(
    core: Core,
    routers: Mapping[str, Maker],
    *,
    scheme: str = "dense",
    split: str = "test",
    resamples: int = 10_000,
    seed: int = 0,
    seeds: int = 1,
    cluster: str | None = None,
    points: int = 100,
    scaling: str = "min-max",
    pair: tuple[str, str] | None = None,
    pair_routers: Mapping[str, Callable[[Queries], Floats]] | None = None,
    bands: Bands | None = None,
    ood: bool = False,
) -> Evaluation:
    """Fit routers on train, choose on validation, measure on test.

    Args:
        routers: name → maker of a fresh router for a seed.
        seeds: fits per router; metrics are of the first, and with more than one
            `accuracy_seed_mean` and `accuracy_seed_sd` are added.
        pair: (small, large) for the trade-off metrics; by default the two
            models of a pool of two, else none.
        pair_routers: name → function from questions to how much the large
            model is wanted, already trained on preferences.
        ood: also retrain without each task group (and without the models the
            release calls unseen).

    Raises:
        BadInput: a split is empty, a name is taken, or a router's scores have
            the wrong shape or are not finite.
    """
    taken = sorted(set(routers) & set(REFERENCES))
    if taken:
        raise BadInput(f"{taken[0]!r} is the name of a reference", next_step="rename the router")
    ground = prepare(core, scheme, split=split, resamples=resamples, seed=seed, cluster=cluster)
    scores, spread = _scores(ground, routers, seeds)
    measured = [
        measure(ground, name, found, points=points, scaling=scaling)
        for name, found in scores.items()
    ]
    references = _references(ground, points, scaling)
    rows: list[Metric] = [row for one in [*measured, *references] for row in one.metrics]
    rows += spread + _plain_references(ground)
    rows += _agreement(ground, measured)
    curves = [row for one in [*measured, *references] for row in one.curves]
    for name in ground.prices:
        curves += mix_curve(ground, name)
    comparisons = _comparisons(ground, measured)
    traded: list[Traded] = []
    chosen = pair or default_pair(core)
    if chosen is not None:
        on = pair_of(ground.test, *chosen)
        traded = _trade(ground, on, scores, pair_routers or {}, bands)
        rows += [row for one in traded for row in one.metrics] + _pair_levels(ground, on)
        curves += [row for one in traded for row in one.curves]
        comparisons += compare(
            "apgr",
            ground.split,
            {one.router: one.apgr for one in traded if one.router not in REFERENCES},
        )
    found_ood = _ood(core, scheme, routers, ground, resamples, seed) if ood else None
    if found_ood is not None:
        rows += _ood_metrics(found_ood)
    accuracy = {
        one.router: float(at_choice(ground.test.labels, one.choice).mean()) for one in measured
    }
    return Evaluation(
        metrics=table(rows, METRICS_SCHEMA),
        curves=table(curves, CURVES_SCHEMA),
        comparisons=table(comparisons, COMPARISONS_SCHEMA),
        profiles=_profiles(ground, [*measured, *references]),
        exchanges=_exchanges(ground, measured),
        ood=None if found_ood is None else pa.Table.from_pylist(found_ood),
        choices=_choices(ground, [*measured, *references]),
        ranking=[asdict(rank) for rank in ranking(accuracy, comparisons, "accuracy")],
        facts=_facts(core, ground, scheme, resamples, seed, cluster, chosen),
    )


def _scores(
    ground: Ground, routers: Mapping[str, Maker], seeds: int
) -> tuple[dict[str, Floats], list[Metric]]:
    queries, shape = ground.test.queries(), (ground.test.n_queries, ground.test.n_models)
    scores: dict[str, Floats] = {}
    spread: list[Metric] = []
    for name, make in routers.items():
        reached = []
        for seed in range(seeds):
            router = make(seed)
            router.fit(ground.train)
            found = np.asarray(router.scores(queries), dtype=np.float64)
            if found.shape != shape or not np.isfinite(found).all():
                wrong = "are not finite" if found.shape == shape else f"have shape {found.shape}"
                raise BadInput(
                    f"the scores of router {name!r} {wrong}",
                    next_step=f"`scores` returns {shape[0]} × {shape[1]} finite numbers, "
                    "columns in the order of `train.model_ids`",
                )
            scores.setdefault(name, found)
            if seeds > 1:
                reached.append(_accuracy(ground, found))
        if reached:
            mean, deviation = seed_spread(reached)
            spread += [
                metric(name, "accuracy_seed_mean", ground.split, mean),
                metric(name, "accuracy_seed_sd", ground.split, deviation),
            ]
    return scores, spread


def _accuracy(ground: Ground, scores: Floats) -> float:
    """Accuracy of the highest score, cost disregarded."""
    choice = best(scores, ground.available(), ground.price)
    return float(at_choice(ground.test.labels, choice).mean())


def _references(ground: Ground, points: int, scaling: str) -> list[Measured]:
    """The per-query and the per-task oracle, measured like routers."""
    y = np.nan_to_num(ground.test.labels, nan=-1.0)
    test = ground.test
    per_task = np.zeros_like(y)
    for task in np.unique(test.tasks):
        at = test.tasks == task
        per_task[at] = np.nan_to_num(single_means(test.labels[at]), nan=-1.0)
    return [
        measure(ground, "oracle", y, points=points, scaling=scaling),
        measure(ground, "task oracle", per_task, points=points, scaling=scaling),
    ]


def _plain_references(ground: Ground) -> list[Metric]:
    """Accuracy and cost of every single model, of the best of them, and of uniform chance."""
    y, split, ids = ground.test.labels, ground.split, ground.test.model_ids
    columns = {f"single:{name}": y[:, k] for k, name in enumerate(ids)}
    columns["best single"] = y[:, ground.single]
    columns["uniform random"] = random_mean(y)
    replicates = ground.draws.means(np.stack(list(columns.values()), axis=1))
    rows = [
        metric(name, "accuracy", split, _mean(column), replicates[:, k], "no label in the split")
        for k, (name, column) in enumerate(columns.items())
    ]
    for name in ground.prices:
        cost = ground.test.costs[name]
        paid = ground.draws.means(cost)
        for k, model in enumerate(ids):
            rows.append(
                metric(
                    f"single:{model}", f"mean_cost[{name}]", split, _mean(cost[:, k]), paid[:, k]
                )
            )
        k = ground.single
        rows.append(
            metric("best single", f"mean_cost[{name}]", split, _mean(cost[:, k]), paid[:, k])
        )
    return rows


def _mean(column: Floats) -> float:
    return float("nan") if np.isnan(column).all() else float(np.nanmean(column))


def _agreement(ground: Ground, measured: Sequence[Measured]) -> list[Metric]:
    """Share of questions on which a router chooses the best generalist; 1 is collapse onto it."""
    rows = []
    for one in measured:
        same = (one.choice == ground.single).astype(np.float64)[:, None]
        rows.append(
            metric(
                one.router,
                "agreement_with_generalist",
                ground.split,
                float(same.mean()),
                ground.draws.means(same)[:, 0],
            )
        )
    return rows


def _comparisons(ground: Ground, measured: Sequence[Measured]) -> list[Comparison]:
    y = ground.test.labels
    hits = {one.router: (float(at_choice(y, one.choice).mean()), one.accuracy) for one in measured}
    single = y[:, ground.single]
    if not np.isnan(single).any():
        hits["best single"] = (float(single.mean()), ground.draws.means(single[:, None])[:, 0])
    found = compare("accuracy", ground.split, hits)
    for name in ground.prices:
        areas = {one.router: one.areas[name] for one in measured}
        found += compare(f"audc[{name}]", ground.split, areas)
    matched = {one.router: one.matched for one in measured}
    budget = f"mcnemar[{ground.measure or 'accuracy'}]"
    return found + compare_matched(budget, ground.split, matched)


def _trade(
    ground: Ground,
    on: Pair,
    scores: Mapping[str, Floats],
    pair_routers: Mapping[str, Callable[[Queries], Floats]],
    bands: Bands | None,
) -> list[Traded]:
    small, large = (ground.test.model_ids.index(name) for name in on.names)
    groups = None if ground.draws.groups is None else ground.draws.groups[on.rows]
    draws = Draws(len(on.rows), ground.draws.resamples, ground.draws.seed, groups)
    wanted = {name: (s[:, large] - s[:, small])[on.rows] for name, s in scores.items()}
    queries = ground.test.take(on.rows).queries()
    for name, function in pair_routers.items():
        wanted[name] = np.asarray(function(queries), dtype=np.float64)
    # What the oracle curve spends first: questions that only the large model gets right.
    wanted["oracle"] = on.large - on.small
    return [trade(on, draws, ground.split, name, values, bands) for name, values in wanted.items()]


def _pair_levels(ground: Ground, on: Pair) -> list[Metric]:
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
            )
        )
    return rows


def _ood(
    core: Core,
    scheme: str,
    routers: Mapping[str, Maker],
    ground: Ground,
    resamples: int,
    seed: int,
) -> list[dict[str, Any]]:
    makers: dict[str, Callable[[], Router]] = {
        name: partial(make, 0) for name, make in routers.items()
    }
    rows = held_out_groups(core, scheme, makers, resamples=resamples, seed=seed)
    rows += averages(rows)
    hidden = core.unseen.get(scheme) or next(iter(core.unseen.values()), ())
    rows += unseen_models(core, scheme, hidden, makers, resamples=resamples, seed=seed)
    return [asdict(row) for row in rows]


def _ood_metrics(rows: Sequence[Mapping[str, Any]]) -> list[Metric]:
    out = []
    for row in rows:
        split = f"ood:{row['group']}"
        out.append(
            Metric(row["router"], "accuracy_change", split, row["change"], row["low"], row["high"])
        )
        out += [
            Metric(row["router"], name, split, row[name])
            for name in ("id_accuracy", "ood_accuracy", "agreement")
        ]
    return out


def _profiles(ground: Ground, measured: Sequence[Measured]) -> pa.Table:
    return table(
        (
            {
                "router": one.router,
                "split": ground.split,
                "model_id": name,
                "share": float(one.profile[k]),
            }
            for one in measured
            for k, name in enumerate(ground.test.model_ids)
        ),
        PROFILES_SCHEMA,
    )


def _exchanges(ground: Ground, measured: Sequence[Measured]) -> pa.Table:
    ordered = sorted(measured, key=lambda one: one.router)
    return table(
        (
            {
                "first": a.router,
                "second": b.router,
                "split": ground.split,
                **asdict(exchange(ground.test.labels, a.choice, b.choice)),
            }
            for a, b in combinations(ordered, 2)
        ),
        EXCHANGES_SCHEMA,
    )


def _choices(ground: Ground, measured: Sequence[Measured]) -> pa.Table:
    ids = np.array(ground.test.model_ids)
    parts = [
        pa.table(
            {
                "query_id": pa.array(ground.test.query_ids, pa.string()),
                "router": pa.array([one.router] * ground.test.n_queries, pa.string()),
                "model_id": pa.array(ids[one.choice].tolist(), pa.string()),
                "score": pa.array(at_choice(ground.test.labels, one.choice)),
            }
        )
        for one in measured
    ]
    return pa.concat_tables(parts)


def _facts(
    core: Core,
    ground: Ground,
    scheme: str,
    resamples: int,
    seed: int,
    cluster: str | None,
    pair: tuple[str, str] | None,
) -> dict[str, Any]:
    y = ground.test.labels
    return {
        "scheme": scheme,
        "split": ground.split,
        "n_train": len(ground.train.queries),
        "n_validation": 0
        if ground.train.validation is None
        else len(ground.train.validation.queries),
        "n_test": ground.test.n_queries,
        "n_models": core.n_models,
        "coverage": ground.test.coverage,
        "measures": list(ground.prices),
        "best_single": core.model_ids[ground.single],
        "best_on_test": core.model_ids[ground.best_on_test],
        "oracle_accuracy": float(at_choice(y, query_oracle(y)).mean()),
        "task_oracle_accuracy": float(at_choice(y, task_oracle(y, ground.test.tasks)).mean()),
        "resamples": resamples,
        "seed": seed,
        "clustered_by": cluster,
        "pair": None if pair is None else {"small": pair[0], "large": pair[1]},
    }
