"""One evaluation: routers and references on the test questions of one split scheme."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.compare import Comparison, compare, ranking
from routeyard.pipelines.evaluate.pairs import Traded, default_pair, pair_of
from routeyard.pipelines.evaluate.router_result import RouterResult, measure
from routeyard.pipelines.evaluate.rows import (
    MetricRow,
    counted,
    table,
)
from routeyard.pipelines.evaluate.run.between import comparisons, pair_levels, traded
from routeyard.pipelines.evaluate.run.fitted import Fitted, Maker, fitted
from routeyard.pipelines.evaluate.run.references import (
    agreement,
    plain_references,
    reference_scores,
)
from routeyard.pipelines.evaluate.run.shift import ood_metrics, ood_rows
from routeyard.pipelines.evaluate.run.sub_pool import sub_pools
from routeyard.pipelines.evaluate.run.tables import choices, exchanges, facts, profiles
from routeyard.pipelines.evaluate.sweep import joint, mix_curve
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.evaluation_data import EvaluationData, prepare
from routeyard.pipelines.metrics.selection import at_choice
from routeyard.pipelines.metrics.spec import SharedFacts
from routeyard.pipelines.metrics.tradeoff import Bands
from routeyard.pipelines.routers.base import Queries

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
    binary_by: str = "confidence",
    ood: bool = False,
    ood_groups: Mapping[str, Sequence[str]] | None = None,
    clock: Callable[[], float] | None = None,
    embed_seconds: float = 0.0,
    usd_per_hour: float | None = None,
    reference: str | None = None,
    picks: Mapping[str, Mapping[str, float]] | None = None,
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
        bands: where LPM, MPM and HCR look.
        binary_by: how a router of a whole pool routes between the two models:
            by the small one's `confidence`, or by the `difference` of both.
        ood: also retrain without each task group (and without the models the
            release calls unseen).
        ood_groups: name → tasks, patterns of tasks or sources of each group;
            by default every domain is one.
        clock: for `decision_time`; None leaves it out.
        embed_seconds: seconds it takes to embed one question, added to it.
        usd_per_hour: price of the machine that routes, for `decision_cost`.
        reference: model that `v_r` compares with; by default the best on train.
        picks: router → query → 1 where a judge preferred its answer, 0 where
            not, for `answer_quality`.

    Raises:
        BadInput: a split is empty, a name is taken, or a router's scores have
            the wrong shape or are not finite.
    """
    taken = sorted(set(routers) & set(REFERENCES))
    if taken:
        raise BadInput(f"{taken[0]!r} is the name of a reference", next_step="rename the router")
    data = prepare(core, scheme, split=split, resamples=resamples, seed=seed, cluster=cluster)
    chosen = pair or default_pair(core)
    done = fitted(data, routers, seeds, clock)
    shared = _shared(
        data, done, points, chosen, embed_seconds, usd_per_hour, reference, picks or {}
    )
    measured, references = (
        [
            measure(data, name, found, points=points, scaling=scaling, shared=shared)
            for name, found in group.items()
        ]
        for group in (done.scores, reference_scores(data))
    )
    every = [*measured, *references]
    rows = _rows(every)
    rows += done.spread + plain_references(data) + agreement(data, measured)
    curves = _curves(every)
    curves += [row for name in data.prices for row in mix_curve(data, name)]
    compared = comparisons(data, measured)
    if chosen is not None:
        on = pair_of(data.test, *chosen)
        duels = traded(data, on, done.scores, pair_routers or {}, bands, binary_by)
        rows += [*_rows(duels), *pair_levels(data, on)]
        curves += _curves(duels)
        compared += _compared_on_pair(data, duels)
    pools = sub_pools(
        core, data, done.scores, routers,
        scheme=scheme, cluster=cluster, points=points, scaling=scaling,
    )  # fmt: skip
    for pool in pools:
        rows, curves, compared = rows + pool.rows, curves + pool.curves, compared + pool.compared
    found_ood = None
    if ood or ood_groups:
        found_ood = ood_rows(core, scheme, routers, resamples, seed, ood_groups)
        rows += ood_metrics(found_ood)
    accuracy = {
        one.router: float(at_choice(data.test.labels, one.choice).mean()) for one in measured
    }
    return Evaluation(
        metrics=table(counted(rows, data.test.n_queries), "metrics"),
        curves=table(curves, "curves"),
        comparisons=table(compared, "comparisons"),
        profiles=profiles(data, every),
        exchanges=exchanges(data, measured),
        ood=None if found_ood is None else table(found_ood, "ood"),
        choices=choices(data, every),
        ranking=[asdict(rank) for rank in ranking(accuracy, compared, "accuracy")],
        facts={
            **facts(core, data, scheme, resamples, seed, cluster, chosen, pools),
            "bands": list(astuple(bands or Bands())),
            **({"no_chances": done.no_chances} if done.no_chances else {}),
            **({"not_as_published": done.not_as_published} if done.not_as_published else {}),
        },
    )


def _rows(results: Sequence[RouterResult | Traded]) -> list[MetricRow]:
    return [row for one in results for row in one.metrics]


def _curves(results: Sequence[RouterResult | Traded]) -> list[dict[str, Any]]:
    return [row for one in results for row in one.curves]


def _compared_on_pair(data: EvaluationData, duels: Sequence[Traded]) -> list[Comparison]:
    """All pairs of routers by APGR and by AUROC; references are not compared."""
    ours = [one for one in duels if one.router not in REFERENCES]
    return [
        row
        for name in ("apgr", "auroc")
        for row in compare(name, data.split, {one.router: getattr(one, name) for one in ours})
    ]


def _shared(
    data: EvaluationData,
    done: Fitted,
    points: int,
    pair: tuple[str, str] | None,
    embed_seconds: float,
    usd_per_hour: float | None,
    reference: str | None,
    picks: Mapping[str, Mapping[str, float]],
) -> SharedFacts:
    """Facts that all routers of the evaluation share."""
    largest, frontier = joint(data, done.scores, points)
    ids = data.test.query_ids
    return SharedFacts(
        largest=largest,
        frontier=frontier,
        pair=None if pair is None else (data.test.place(pair[0]), data.test.place(pair[1])),
        reference=None if reference is None else data.test.place(reference),
        seconds={name: one + embed_seconds for name, one in done.seconds.items()},
        usd_per_hour=usd_per_hour,
        scales=done.scales,
        picks={
            router: np.array([judged.get(query, np.nan) for query in ids])
            for router, judged in picks.items()
        },
    )
