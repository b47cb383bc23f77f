"""The certificate itself: figures of the pool, reference routers tried, a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.certificate.crossfit import REFERENCE, Collapse, crossfitted
from routeyard.pipelines.evaluate.certificate.leaks import leaks
from routeyard.pipelines.evaluate.certificate.pool import Figure, ModelFigure, pool_figures
from routeyard.pipelines.evaluate.certificate.power import resolvable_difference
from routeyard.pipelines.evaluate.certificate.verdict import RULE, verdict_of
from routeyard.pipelines.experiment.effort import one_thread_each
from routeyard.pipelines.experiment.fit import PredictionStore
from routeyard.pipelines.experiment.splits import default_scheme
from routeyard.pipelines.matrix.core import Core, first_measure
from routeyard.pipelines.matrix.ranking import counts_of, mean_costs
from routeyard.pipelines.metrics.baselines import best_single
from routeyard.pipelines.metrics.bootstrap import Draws
from routeyard.schemas.intervals import order_undecided
from routeyard.schemas.notebook import html_card


@dataclass(frozen=True)
class Certificate:
    """JSON-ready (`to_json`). Accuracies and gaps are shares, not per cent.

    `figures` holds, by name: best_single, uniform_random, cost_matched_mix,
    task_oracle, task_oracle_crossfitted, query_oracle, query_oracle_corrected,
    query_oracle_chance_corrected, the gaps gap_task_oracle, gap_query_oracle,
    gap_query_oracle_corrected, gap_query_oracle_chance_corrected (all against
    the best single model) and gap_mix (oracle against the mix),
    specialist_stability, hard_share, unsolved_share, all_right_share,
    best_covers, dominated_share, redundancy, contested_share,
    unreadable_share, resolvable_difference (of the test questions) and
    resolvable_difference_crossfitted (of all questions, as the reference
    routers are tried).
    They are over the `n_compared` questions on which the
    best single model has a label, so that they can be compared.

    Attributes:
        order_undecided: models whose order with `best_single` is open because labels are missing
            or undecided, and for that reason alone.
        encoder: what made the vectors that the reference routers learn from; None without any.
    """

    n_queries: int
    n_compared: int
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
    folds: int | None
    test_in_train: Mapping[str, Mapping[str, int | None]]
    verdict: str
    words: str
    order_undecided: Sequence[str] = ()
    encoder: str | None = None
    rule: str = RULE

    def __repr__(self) -> str:
        return f"Certificate: {self.verdict}. {self.words}"

    def _repr_html_(self) -> str:
        rows = [
            {"router": one.router, "accuracy": one.accuracy, "gain over the best model": one.gain,
             "low": one.gain_low, "high": one.gain_high}
            for one in self.routers
        ]  # fmt: skip
        facts = {"verdict": self.verdict, "questions": self.n_queries, "models": self.n_models}
        return html_card("certificate", {**facts, "": self.words}, rows)

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers; keys in a fixed order."""
        return {"format": 1, **asdict(self)}


@one_thread_each()
def certify(
    core: Core,
    *,
    scheme: str | None = None,
    measure: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    routers: Sequence[str] = REFERENCE,
    folds: int = 5,
    store: PredictionStore | None = None,
) -> Certificate:
    """Certificate of a release or of staged tables.

    Figures of the pool are over the queries on which the best single model has a
    label; the reference routers are cross-fitted over the same queries; the
    resolvable difference is that of the test questions of `scheme`, on which
    others will compare.

    Args:
        scheme: split scheme; by default `upstream`, `dense`, or the first in order.
        measure: cost measure; by default the first known of usd, tokens,
            latency, params. Figures of cost are null unless it is known of every
            labelled answer.
        cluster: `duplicates` or `task` to resample whole groups.
        routers: reference routers to try, names of `ROUTERS`;
            none when empty.
        folds: folds of the cross-fitting.
        store: where predictions are kept.

    Raises:
        BadInput: no query has a label, or a name is unknown.
    """
    core = core.labelled()
    if not core.n_queries:
        raise BadInput(
            "no query has a label, so there is nothing to certify: every answer is missing, or "
            "undecided because no scorer could read it",
            next_step="label the responses first (`routeyard relabel`); where they are undecided, "
            "name another `scorer`, a judge under `label.default.then`, or `unreadable: incorrect`",
        )
    measure = first_measure(core.costs, measure)
    part = "" if measure is None else core.part_priced(measure)
    no_cost = f"{measure} is {part}; figures of cost need all of them" if part else core.no_cost
    scheme = None if scheme is None and not core.splits else default_scheme(core, scheme)
    cost = core.costs[measure] if measure and not part else None
    price = mean_costs(cost) if cost is not None else None
    single = best_single(core.labels, price)
    draws = Draws(core.n_queries, resamples, seed, core.clusters(cluster))
    figures, models = pool_figures(core, cost, single, draws, no_cost)
    test = _test(core, scheme)
    compared = core.take(np.flatnonzero(~np.isnan(core.labels[:, single])))
    if compared.n_queries < core.n_queries:
        draws = Draws(compared.n_queries, resamples, seed, compared.clusters(cluster))
    for name, among in (
        ("resolvable_difference", test or core),
        ("resolvable_difference_crossfitted", compared),
    ):
        found = resolvable_difference(among.labels)
        why = "fewer than two models share questions" if found is None else None
        figures[name] = Figure(found, reason=why)
    tried, why_not = crossfitted(compared, routers=routers, folds=folds, draws=draws, store=store)
    undecided = order_undecided(counts_of(core.labels, core.model_ids), core.model_ids[single])
    verdict, words = verdict_of(
        core.model_ids[single], figures, tried, why_not,
        folds=folds, compared=compared.n_queries, queries=core.n_queries, undecided=undecided,
    )  # fmt: skip
    return Certificate(
        n_queries=core.n_queries,
        n_compared=compared.n_queries,
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
        folds=folds if tried else None,
        test_in_train={name: leaks(core, name) for name in sorted(core.splits)},
        verdict=verdict,
        words=words,
        order_undecided=undecided,
        encoder=core.encoder,
    )


def _test(core: Core, scheme: str | None) -> Core | None:
    if scheme is None:
        return None
    rows = np.flatnonzero(core.splits[scheme] == "test")
    return core.take(rows) if len(rows) else None
