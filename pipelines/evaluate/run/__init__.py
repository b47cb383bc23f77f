"""One evaluation: routers fitted, measured and compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.machine import one_thread_each
from routeyard.pipelines.common.matrix import Core, Queries
from routeyard.pipelines.evaluate.experiment import Maker, default_scheme
from routeyard.pipelines.evaluate.fit import Experiment, PredictionStore
from routeyard.pipelines.evaluate.metrics.spec import EvaluationData, SharedFacts, prepare
from routeyard.pipelines.evaluate.results import (
    ALPHA,
    Comparison,
    RouterResult,
    compare,
    default_pair,
    measure,
    pair_of,
    ranking,
)
from routeyard.pipelines.evaluate.run.fitted import (
    Fitted,
    fitted,
    ood_metrics,
    ood_rows,
    over_splits,
    plain_references,
    reference_scores,
)
from routeyard.pipelines.evaluate.run.fitted import references_agreement as agreement
from routeyard.pipelines.evaluate.run.tables import (
    WITHOUT_LEAKS,
    accuracy,
    choices,
    comparisons,
    exchanges,
    facts,
    pair_levels,
    profiles,
    sub_pools,
    traded,
    untold,
)
from routeyard.pipelines.evaluate.settings import EvaluationSettings
from routeyard.pipelines.evaluate.sweep import counted, joint, mix_curve, table
from routeyard.schemas.errors import BadInput
from routeyard.schemas.text import html_card

# One evaluation: routers and references on the test questions of one split scheme.

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
        settings: what it was done with.
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
    settings: EvaluationSettings

    def __repr__(self) -> str:
        most = max((item["value"] for item in self.ranking), default=None)
        first = [item["router"] for item in self.ranking if item["value"] == most]
        best = f"; first {' and '.join(first)} with accuracy {most:.4f}" if first else ""
        return f"Evaluation of {len(self.ranking)} routers{best}"

    def _repr_html_(self) -> str:
        rows = [
            {"router": item["router"], "accuracy": item["value"],
             "places": f"{item['best_place']} to {item['worst_place']}"}
            for item in self.ranking
        ]  # fmt: skip
        facts = {"split": self.settings.split, "resamples": self.settings.resamples}
        return html_card(f"evaluation of {len(rows)} routers", facts, rows)


@one_thread_each()
def evaluate(
    core: Core,
    routers: Mapping[str, Maker],
    settings: EvaluationSettings | None = None,
    *,
    pair_scorers: Mapping[str, Callable[[Queries], Floats]] | None = None,
    picks: Mapping[str, Mapping[str, float]] | None = None,
    clock: Callable[[], float] | None = None,
    store: PredictionStore | None = None,
    own: Sequence[str] = (),
    **changes: Any,
) -> Evaluation:
    """Fit routers on train, choose on validation, measure on test.

    Args:
        routers: name → maker of a fresh router for a seed.
        settings: how; by default those of `EvaluationSettings`.
        pair_scorers: name → function from questions to how much the large
            model is wanted, already trained on preferences.
        picks: router → query → 1 where a judge preferred its answer, 0 where
            not, for `answer_quality`.
        clock: for `decision_time`, in place of the system's where the settings are timed.
        store: where predictions are kept, so that none is made twice.
        own: routers whose figures the report is about, in place of the best one.
        changes: settings that differ, by name.

    Raises:
        BadInput: a split is empty, a name is taken, or a router's scores have
            the wrong shape or are not finite.
    """
    _check_names(routers)
    how = (settings or EvaluationSettings()).but(**changes)
    scheme = default_scheme(core, how.scheme)
    data = prepare(
        core, scheme, split=how.split, resamples=how.resamples, seed=how.seed, cluster=how.cluster
    )
    chosen = how.pair or default_pair(core)
    if clock is None and how.timed:
        clock = time.perf_counter
    experiment = Experiment(data.train, routers, how.seeds, store)
    done = fitted(data, experiment, clock)
    shared = _shared(data, done, how, chosen, picks or {})
    measured, references = (
        [
            measure(data, name, item, points=how.points, scaling=how.scaling, shared=shared)
            for name, item in group.items()
        ]
        for group in (done.scores, reference_scores(data))
    )
    every = [*measured, *references]
    rows = _joined(every, "metrics")
    rows += done.spread + plain_references(data) + agreement(data, measured)
    curves = _joined(every, "curves")
    curves += [row for name in data.prices for row in mix_curve(data, name)]
    compared = comparisons(data, measured)
    if chosen is not None:
        on = pair_of(data.test, *chosen)
        duels = traded(data, on, done.scores, pair_scorers or {}, how.bands, how.binary_by)
        rows += [*_joined(duels, "metrics"), *pair_levels(data, on)]
        curves += _joined(duels, "curves")
        compared += _compared_on_pair(data, duels)
    pools = sub_pools(core, data, done.scores, experiment, how.but(scheme=scheme))
    for pool in pools:
        rows, curves, compared = rows + pool.rows, curves + pool.curves, compared + pool.compared
    found_ood = None
    if how.ood or how.ood_groups:
        found_ood = ood_rows(core, scheme, experiment, how)
        rows += ood_metrics(found_ood)
    # Last: a router that was handed over as an object is fitted again by it.
    rows += over_splits(core, scheme, experiment, how)
    headline = WITHOUT_LEAKS if data.clean is not None and not done.as_published else "accuracy"
    values = {item.router: accuracy(data, item, headline)[0] for item in measured}
    summary = facts(core, data, scheme, how.resamples, how.seed, how.cluster, chosen, pools)
    summary["missing"] += untold(len(measured), how.resamples)
    summary["order_undecided"]["routers"] = _open_pairs(compared, headline)
    return Evaluation(
        metrics=table(counted(rows, data.test.n_queries), "metrics"),
        curves=table(curves, "curves"),
        comparisons=table(compared, "comparisons"),
        profiles=profiles(data, every),
        exchanges=exchanges(data, measured),
        ood=None if found_ood is None else table(found_ood, "ood"),
        choices=choices(data, every),
        ranking=[asdict(rank) for rank in ranking(values, compared, headline)],
        facts={
            **summary,
            "bands": list(astuple(how.bands)),
            "headline": headline,
            **_router_notes(done),
            "validation": done.validation,
            "own": list(own),
            "on_encoder": sorted(done.on_encoder),
        },
        settings=how.but(scheme=scheme, pair=chosen),
    )


def _check_names(routers: Mapping[str, Maker]) -> None:
    if taken := sorted(set(routers) & set(REFERENCES)):
        raise BadInput(f"{taken[0]!r} is the name of a reference", next_step="rename the router")


def _router_notes(done: Fitted) -> dict[str, Any]:
    """What is to be reported about routers, where there is anything."""
    result = {"no_chances": done.no_chances, "not_as_published": done.not_as_published,
             "not_read": done.not_read}  # fmt: skip
    return {name: said for name, said in result.items() if said}


def _joined(results: Sequence[RouterResult], part: Literal["metrics", "curves"]) -> list[Any]:
    return [row for result in results for row in getattr(result, part)]


def _open_pairs(compared: Sequence[Comparison], headline: str) -> list[list[str]]:
    """Pairs whose difference is significant, and depends on labels that are missing."""
    return [
        [row.first, row.second]
        for row in compared
        if row.metric == headline and row.p_adjusted < ALPHA and not row.significant
    ]


def _compared_on_pair(data: EvaluationData, duels: Sequence[RouterResult]) -> list[Comparison]:
    """All pairs of routers by APGR and by AUROC; references are not compared."""
    ours = [duel for duel in duels if duel.router not in REFERENCES]
    return [
        row
        for name in ("apgr", "auroc")
        for row in compare(name, data.split, {item.router: item.areas[name] for item in ours})
    ]


def _shared(
    data: EvaluationData,
    done: Fitted,
    how: EvaluationSettings,
    pair: tuple[str, str] | None,
    picks: Mapping[str, Mapping[str, float]],
) -> SharedFacts:
    """Facts that all routers of the evaluation share."""
    # Only metrics of `--all` look at the sweeps of the others.
    wanted = done.scores if how.all else {}
    largest, frontier = joint(data, wanted, how.points, done.decision_usd)
    ids, of = data.test.query_ids, how.reference
    return SharedFacts(
        largest=largest,
        frontier=frontier,
        pair=None if pair is None else (data.test.place(pair[0]), data.test.place(pair[1])),
        reference=None if of is None else data.test.place(of),
        seconds={name: item + how.embed_seconds for name, item in done.seconds.items()},
        usd_per_hour=how.usd_per_hour,
        decision_usd=done.decision_usd,
        scales=done.scales,
        all=how.all,
        picks={
            router: np.array([judged.get(query, np.nan) for query in ids])
            for router, judged in picks.items()
        },
    )


__all__ = ["REFERENCES", "Evaluation", "Maker", "evaluate"]
