"""Unseen models: what it costs a router not to have known some models while training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.held_out.ood import (
    OutOfDistribution,
    choices_of,
    price_of,
    row_of,
    tested,
)
from routeyard.pipelines.experiment.fit import Fit, PredictionStore
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.baselines import best_single
from routeyard.pipelines.metrics.bootstrap import Draws
from routeyard.pipelines.routers.base import Examples, Queries, Router

#: What the models that are asked may be, with the name of the group.
AMONG = {
    "seen": "unseen models",
    "unseen": "unseen models: among unseen",
    "all": "unseen models: among all",
    "described": "unseen models: by descriptor",
}
#: The default: `described` is for routers that read descriptors.
USUAL = ("seen", "unseen", "all")


def unseen_models(
    core: Core,
    scheme: str,
    unseen: tuple[str, ...],
    routers: Mapping[str, Callable[[], Router]],
    *,
    among: Sequence[str] = USUAL,
    resamples: int = 10_000,
    seed: int = 0,
    store: PredictionStore | None = None,
) -> list[OutOfDistribution]:
    """What it costs not to have known some models while training.

    `id_accuracy` is that of the router trained on the whole pool, asking the
    same models.

    Args:
        among: `seen`: trained on the seen models, it can only ask those, and is
            compared with the whole pool. `unseen` and `all`: the labels of
            unseen models are hidden on the train questions and known on the
            validation questions alone (how a new model joins a pool: Universal
            Model Routing), and it asks the unseen ones only (CSCR, section
            4.2.1), or any. `described`: as `unseen`, with no label of an unseen model
            at all, so that their descriptors and costs are everything that is known.
    """
    seen = tuple(name for name in core.model_ids if name not in unseen)
    new = tuple(name for name in core.model_ids if name in unseen)
    if not new or not seen:
        return []
    everything = core.training(scheme)
    joined = _joined(everything, core.model_ids, new)
    full = {name: Fit(make, everything, store) for name, make in routers.items()}
    late: dict[str, Fit] = {}
    if joined is not None and {"unseen", "all"} & set(among):
        late = {name: Fit(make, joined, store) for name, make in routers.items()}
    found: list[OutOfDistribution] = []
    for which in among:
        if which not in AMONG:
            raise BadInput(
                f"unseen models cannot be routed among {which!r}",
                next_step=f"known: {', '.join(AMONG)}",
            )
        pool = {"seen": seen, "unseen": new, "all": core.model_ids, "described": new}[which]
        at = np.array([core.model_ids.index(name) for name in pool])
        test = tested(core, scheme, ~np.all(np.isnan(core.labels[:, at]), axis=1))
        draws = Draws(test.n_queries, resamples, seed)
        few = core.with_models(pool).training(scheme)
        heuristic = int(at[best_single(few.labels, price_of(few))])
        for name, make in routers.items():
            if which == "seen":
                known = choices_of(full[name], test, everything)
                alone = Fit(make, few, store)
                new_choice = at[choices_of(alone, test.with_models(pool), few)]
            elif which == "described":
                known = choices_of(full[name], test, everything, at)
                blind = _unlabelled(everything, new)
                new_choice = choices_of(Fit(make, blind, store), test, everything, at)
            elif name in late:
                known = choices_of(full[name], test, everything, at)
                new_choice = choices_of(late[name], test, everything, at)
            else:
                continue
            found.append(row_of(name, AMONG[which], test, known, new_choice, heuristic, draws))
    return found


def _unlabelled(train: Examples, new: tuple[str, ...]) -> Examples:
    """The same questions, nothing known of how new models answer them."""
    hidden = train.labels.copy()
    hidden[:, [train.model_ids.index(name) for name in new]] = np.nan
    held = None if train.validation is None else _unlabelled(train.validation, new)
    return replace(train, labels=hidden, validation=held)


def newcomers(
    core: Core,
    scheme: str,
    unseen: tuple[str, ...],
    routers: Mapping[str, Callable[[], Router]],
    *,
    labelled: bool = True,
) -> tuple[Core, dict[str, Router]]:
    """The pool of unseen models alone, and routers that were trained without them.

    Hand both to `evaluate` for curves among new models (CSCR, Table 2). Every router is
    fitted here; its `fit` afterwards does nothing.

    Args:
        labelled: the new models' labels on the validation questions are known, as a
            cluster footprint needs; otherwise nothing but descriptors and costs.

    Raises:
        BadInput: the scheme has no validation questions, or no model is unseen.
    """
    new = tuple(name for name in core.model_ids if name in unseen)
    if not new or len(new) == core.n_models:
        raise BadInput(
            f"{len(new)} of {core.n_models} models are unseen",
            next_step="give the recipe's split `unseen_models` that leave some for training",
        )
    everything = core.training(scheme)
    train = _joined(everything, core.model_ids, new) if labelled else _unlabelled(everything, new)
    if train is None:
        raise BadInput(
            f"scheme {scheme!r} has no validation questions to know new models by",
            next_step="give the recipe's `split` a validation share",
        )
    at = np.array([core.model_ids.index(name) for name in new])
    m = core.n_models
    made = {name: Answering(Fit(make, train).router, at, m) for name, make in routers.items()}
    return core.with_models(new), dict(made)


class Answering:
    """A router that is fitted already, asked about some of its models.

    Args:
        columns: places of these models among the `width` it was fitted on; None: all.
    """

    def __init__(self, router: Router, columns: Ints | None = None, width: int = 0):
        self.name = router.name
        if columns is not None and hasattr(router, "among"):
            # A router that retrieves the nearest models looks among these alone.
            router, columns = router.among(columns), None
        self._router, self._columns, self._width = router, columns, width

    def fit(self, train: Examples) -> Answering:
        return self

    def scores(self, queries: Queries) -> Floats:
        if self._columns is None:
            return np.asarray(self._router.scores(queries), dtype=np.float64)
        # It knows its models by their places: those not asked about show nothing.
        signals = {}
        for name, values in queries.signals.items():
            signals[name] = np.full((len(queries), self._width), np.nan)
            signals[name][:, self._columns] = values
        found = self._router.scores(replace(queries, signals=signals))
        return np.asarray(found, dtype=np.float64)[:, self._columns]


def _joined(train: Examples, names: tuple[str, ...], new: tuple[str, ...]) -> Examples | None:
    """Train questions without labels of new models, then the validation questions with them."""
    held = train.validation
    if held is None:
        return None
    hidden = train.labels.copy()
    hidden[:, [names.index(name) for name in new]] = np.nan
    return replace(
        train,
        queries=train.queries.followed_by(held.queries),
        labels=np.concatenate([hidden, held.labels]),
        costs={
            name: np.concatenate([cost, held.costs[name]]) for name, cost in train.costs.items()
        },
        validation=None,
    )
