"""Reference routers, cross-fitted over all questions: do they learn, or collapse to one model?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.significance import holm
from routeyard.pipelines.experiment.entrants import registered
from routeyard.pipelines.experiment.fit import Fit, PredictionStore
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.ranking import mean_costs, ranked
from routeyard.pipelines.metrics.baselines import alone
from routeyard.pipelines.metrics.bootstrap import Draws, interval, p_value
from routeyard.pipelines.metrics.plateau import selection_entropy, selection_profile
from routeyard.pipelines.metrics.selection import Choice, at_choice, best
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import traits_of

#: Routers whose collapse the certificate reports.
REFERENCE = ("kmeans", "knn", "mf", "mlp", "task-map")
#: A router is better when its corrected p-value is below this.
SURE = 0.05


def least_resamples(routers: int) -> int:
    """Resamples with which the best of so many routers can be found better, after Holm.

    The least p-value of a two-sided bootstrap test is 2/(resamples + 1), times the routers.

    >>> least_resamples(5)
    200
    """
    return math.ceil(2 * routers / SURE)


@dataclass(frozen=True)
class Collapse:
    """One reference router on all questions, asked without regard to cost.

    Each question is routed by a router that was fitted without its fold.

    Attributes:
        accuracy: mean score of its choices.
        gain: accuracy minus that of the single model that is best on the same
            train questions, with a paired interval and a Holm-corrected p-value. Where
            that model has no label the next best replaces it, as for the router.
        top_model, top_share: the model it asks most (all of them where equal), and how often.
        entropy: selection entropy over log m; 0 is collapse.
    """

    router: str
    accuracy: float
    gain: float
    gain_low: float
    gain_high: float
    p_adjusted: float
    top_model: str
    top_share: float
    entropy: float


def fold_of(core: Core, folds: int, seed: int) -> Ints:
    """(n,) fold of each question: near-duplicates together, tasks in proportion, seeded.

    Within every task the groups are shuffled and dealt in turn; a group that
    spans tasks follows its first question.
    """
    generator = np.random.default_rng(seed)
    first = np.unique(core.groups, return_index=True)[1]
    place = generator.permutation(len(first))
    order = np.lexsort((place, core.tasks[first]))
    dealt = np.empty(len(first), dtype=np.int64)
    dealt[order] = np.arange(len(first)) % folds
    return np.asarray(dealt[np.searchsorted(core.groups[first], core.groups)])


def crossfitted(
    core: Core,
    *,
    routers: Sequence[str] = REFERENCE,
    folds: int = 5,
    draws: Draws,
    store: PredictionStore | None = None,
) -> tuple[list[Collapse], str | None]:
    """Every question routed by routers fitted on the other folds.

    In each turn the next fold's neighbours (one eighth of what is left) serve
    as validation questions, on which hyperparameters are chosen.

    Args:
        draws: resamples of the core's questions, for the paired intervals.
        store: where predictions are kept.

    Returns:
        The routers tried, and why others (or all) were not.

    Raises:
        BadInput: `folds` is below 2, or the resamples are too few to decide.
    """
    if folds < 2:
        raise BadInput(f"{folds} fold(s) leave nothing to fit on", next_step="give at least 2")
    if not routers:
        return [], "no reference router was asked for"
    blind = core.embeddings is None
    reads = {name: "embeddings" in traits_of(ROUTERS.get(name)).needs for name in routers}
    names = [name for name in routers if not (blind and reads[name])]
    why_not = "the questions have no embeddings" if len(names) < len(routers) else None
    if core.n_queries < 4 * folds:
        return [], f"{core.n_queries} questions are too few for {folds} folds"
    if not names:
        return [], why_not
    if draws.resamples < (least := least_resamples(len(names))):
        raise BadInput(
            f"{draws.resamples:,} resamples cannot show that any of {len(names)} reference routers "
            f"is better: with Holm's correction no p-value can fall below {SURE:g}",
            where="resamples",
            next_step=f"give at least {least:,} (the default is 10,000)",
        )
    specs = {spec.name: spec for spec in registered(names)}
    fold = fold_of(core, folds, draws.seed)
    choices = {name: np.zeros(core.n_queries, dtype=np.int64) for name in names}
    singles = np.zeros(core.n_queries, dtype=np.int64)
    for k in range(folds):
        test, rest = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        held = core.take(rest)
        inner = fold_of(held, 8, draws.seed + 1 + k) == 0
        train = held.take(np.flatnonzero(~inner)).examples(
            held.take(np.flatnonzero(inner)).examples()
        )
        price = mean_costs(held.costs["usd"]) if "usd" in held.costs else np.zeros(core.n_models)
        part = core.take(test)
        order = ranked(held.labels, price)
        singles[test] = alone(~np.isnan(part.labels), order)[:, order[0]]
        queries = part.queries()
        for name in names:
            scores = Fit(specs[name], train, store).scores(queries)
            choices[name][test] = best(scores, ~np.isnan(part.labels), order)
    return _collapses(core, choices, singles, draws), why_not


def _collapses(
    core: Core, choices: Mapping[str, Choice], singles: Choice, draws: Draws
) -> list[Collapse]:
    names = list(choices)
    scores = np.stack([at_choice(core.labels, choices[name]) for name in names], axis=1)
    gains = scores - at_choice(core.labels, singles)[:, None]
    replicates = draws.means(gains)
    adjusted = holm([p_value(replicates[:, k]) for k in range(len(names))])
    found = []
    for k, name in enumerate(names):
        low, high = interval(replicates[:, k])
        profile = selection_profile(choices[name], core.n_models)
        found.append(
            Collapse(
                router=name,
                accuracy=float(scores[:, k].mean()),
                gain=float(gains[:, k].mean()),
                gain_low=low,
                gain_high=high,
                p_adjusted=adjusted[k],
                top_model=" and ".join(
                    core.model_ids[m] for m in np.flatnonzero(profile == profile.max())
                ),
                top_share=float(profile.max()),
                entropy=selection_entropy(profile),
            )
        )
    return found
