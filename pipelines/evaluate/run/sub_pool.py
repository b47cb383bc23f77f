"""Cost figures of a pool of which some costs are unknown: those of the models whose cost is known.

Routers choose among these models alone, oracles and single models are those of the sub-pool, and
what was left out is named with its accuracy: unknown is not free, and one model without a size
does not take every other's cost away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.evaluate.compare import Comparison
from routeyard.pipelines.evaluate.cost_result import over_costs, routed_of
from routeyard.pipelines.evaluate.rows import MetricRow
from routeyard.pipelines.evaluate.run.between import cost_comparisons
from routeyard.pipelines.evaluate.run.fitted import decision_usd
from routeyard.pipelines.evaluate.run.references import cost_references, reference_scores
from routeyard.pipelines.evaluate.sweep import joint, mix_curve
from routeyard.pipelines.experiment.experiment import Experiment
from routeyard.pipelines.experiment.settings import EvaluationSettings
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.costs import priced
from routeyard.pipelines.metrics.evaluation_data import EvaluationData, prepare
from routeyard.pipelines.metrics.spec import SharedFacts
from routeyard.pipelines.routers.base import traits_of
from routeyard.pipelines.routers.listed import Scale


@dataclass(frozen=True, eq=False)
class SubPool:
    """Figures in one cost measure, over the models whose cost it knows.

    Attributes:
        measure: the cost measure.
        rows, curves, compared: as of an evaluation, only what needs this measure.
        facts: `models`, `left_out` (model → accuracy on the test questions, null without a
            label) and `metrics` (names of the figures that are of the sub-pool).
    """

    measure: str
    rows: list[MetricRow]
    curves: list[dict[str, Any]]
    compared: list[Comparison]
    facts: dict[str, Any]


def sub_pools(
    core: Core,
    data: EvaluationData,
    scores: Mapping[str, Floats],
    experiment: Experiment,
    how: EvaluationSettings,
) -> list[SubPool]:
    """One sub-pool for each measure that the whole pool has no figures in.

    Args:
        scores: router → (n_test, m) scores on the whole pool. One that needs costs to learn is
            fitted again, on the sub-pool.
    """
    found = []
    for name in {**core.costs, **core.part_costs}:
        if name in data.prices:
            continue
        models = _known(core, data, name)
        if not 2 <= len(models) < core.n_models:
            continue
        sub = priced_in(core, name, models)
        part = prepare(
            sub, how.scheme or "", split=data.split, resamples=data.draws.resamples,
            seed=data.draws.seed, cluster=how.cluster,
        )  # fmt: skip
        if name in part.prices:
            at = [core.model_ids.index(model) for model in sub.model_ids]
            rows = np.flatnonzero(np.isin(data.test.query_ids, part.test.query_ids))
            own = {
                router: replace(experiment, train=part.train, _fits={}).scores(
                    router, part.test.queries()
                )
                if "costs" in traits_of(experiment.fit_of(router).made).needs
                else scores[router][rows][:, at]
                for router in experiment.routers
            }
            scales = {router: experiment.fit_of(router).scale for router in own}
            stated = {
                router: usd
                for router in own
                if (usd := decision_usd(experiment.fit_of(router).made, part.test.queries()))
                is not None
            }
            found.append(_measured(data, part, own, scales, name, how, stated))
    return found


def priced_in(core: Core, measure: str, models: Sequence[str]) -> Core:
    """The release with only these models, and with this one measure as what they cost."""
    known = {**core.costs, **core.part_costs}[measure]
    sub = replace(core, costs={measure: known}, part_costs={})
    return sub.with_models(tuple(name for name in core.model_ids if name in set(models)))


def _known(core: Core, data: EvaluationData, name: str) -> list[str]:
    """The models whose cost is known of some train and of some test question."""
    every = {**core.costs, **core.part_costs}[name]
    where = {query: k for k, query in enumerate(core.query_ids)}
    has = np.ones(core.n_models, dtype=bool)
    for queries in (data.train.queries.query_ids, data.test.query_ids):
        has &= priced(every[np.array([where[query] for query in queries])])
    return [model for model, told in zip(core.model_ids, has, strict=True) if told]


def _measured(
    data: EvaluationData,
    part: EvaluationData,
    scores: dict[str, Floats],
    scales: Mapping[str, Scale],
    name: str,
    how: EvaluationSettings,
    stated: Mapping[str, Floats],
) -> SubPool:
    largest, frontier = joint(part, scores, how.points, stated)
    shared = SharedFacts(largest=largest, frontier=frontier, scales=scales, decision_usd=stated)
    ours, references = (
        [
            over_costs(routed_of(part, router, one, shared), points=how.points, scaling=how.scaling)
            for router, one in group.items()
        ]
        for group in (scores, reference_scores(part))
    )
    every = [*ours, *references]
    rows = [row for one in every for row in [*one.metrics, *one.budget]] + cost_references(part)
    curves = [row for one in every for row in one.curves]
    compared = cost_comparisons(part, ours)
    left = [model for model in data.test.model_ids if model not in part.test.model_ids]
    facts = {
        "models": list(part.test.model_ids),
        "left_out": {model: _accuracy(data, model) for model in left},
        "best_single": part.test.model_ids[part.single],
        "metrics": sorted({row.metric for row in rows}),
    }
    return SubPool(name, rows, [*curves, *mix_curve(part, name)], compared, facts)


def _accuracy(data: EvaluationData, model: str) -> float | None:
    labels = data.own(data.test.place(model))
    return None if np.isnan(labels).all() else float(np.nanmean(labels))


def in_words(measure: str, facts: Mapping[str, Any]) -> str:
    """What a reader has to know of a sub-pool's figures."""
    left = facts["left_out"].items()
    shown = ", ".join(
        f"{model} ({'no label' if right is None else f'accuracy {right:.1%}'})"
        for model, right in list(left)[:5]
    )
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    return (
        f"figures in {measure} are over the {len(facts['models'])} models whose cost is known: "
        f"routers choose among them; left out: {shown}{more}"
    )
