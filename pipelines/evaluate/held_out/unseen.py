"""Unseen models: what it costs a router not to have known some models while training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipelines.errors import BadInput
from pipelines.evaluate.baselines import best_single
from pipelines.evaluate.bootstrap import Draws
from pipelines.evaluate.core import Core
from pipelines.evaluate.held_out.ood import (
    OutOfDistribution,
    choices_of,
    fitted,
    price_of,
    row_of,
    tested,
)
from pipelines.routers.base import Examples, Queries, Router

#: What the models that are asked may be, with the name of the group.
AMONG = {
    "seen": "unseen models",
    "unseen": "unseen models: among unseen",
    "all": "unseen models: among all",
}


def unseen_models(
    core: Core,
    scheme: str,
    unseen: tuple[str, ...],
    routers: Mapping[str, Callable[[], Router]],
    *,
    among: Sequence[str] = tuple(AMONG),
    resamples: int = 10_000,
    seed: int = 0,
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
            4.2.1), or any.
    """
    seen = tuple(name for name in core.model_ids if name not in unseen)
    new = tuple(name for name in core.model_ids if name in unseen)
    if not new or not seen:
        return []
    everything = core.training(scheme)
    joined = _joined(everything, core.model_ids, new)
    full = {name: fitted(make, everything) for name, make in routers.items()}
    late: dict[str, Router] = {}
    if joined is not None and {"unseen", "all"} & set(among):
        late = {name: fitted(make, joined) for name, make in routers.items()}
    found: list[OutOfDistribution] = []
    for which in among:
        if which not in AMONG:
            raise BadInput(
                f"unseen models cannot be routed among {which!r}",
                next_step=f"known: {', '.join(AMONG)}",
            )
        pool = {"seen": seen, "unseen": new, "all": core.model_ids}[which]
        at = np.array([core.model_ids.index(name) for name in pool])
        test = tested(core, scheme, ~np.all(np.isnan(core.labels[:, at]), axis=1))
        draws = Draws(test.n_queries, resamples, seed)
        few = core.with_models(pool).training(scheme)
        heuristic = int(at[best_single(few.labels, price_of(few))])
        for name, make in routers.items():
            if which == "seen":
                known = choices_of(full[name], test, everything)
                new_choice = at[choices_of(fitted(make, few), test.with_models(pool), few)]
            elif name in late:
                known = choices_of(full[name], test, everything, at)
                new_choice = choices_of(late[name], test, everything, at)
            else:
                continue
            found.append(row_of(name, AMONG[which], test, known, new_choice, heuristic, draws))
    return found


def _joined(train: Examples, names: tuple[str, ...], new: tuple[str, ...]) -> Examples | None:
    """Train questions without labels of new models, then the validation questions with them."""
    held = train.validation
    if held is None:
        return None
    hidden = train.labels.copy()
    hidden[:, [names.index(name) for name in new]] = np.nan
    a, b = train.queries, held.queries
    vectors = None
    if a.embeddings is not None and b.embeddings is not None:
        vectors = np.concatenate([a.embeddings, b.embeddings])
    return replace(
        train,
        queries=Queries(
            a.query_ids + b.query_ids,
            np.concatenate([a.tasks, b.tasks]),
            vectors,
            a.prompts + b.prompts,
        ),
        labels=np.concatenate([hidden, held.labels]),
        costs={
            name: np.concatenate([cost, held.costs[name]]) for name, cost in train.costs.items()
        },
        validation=None,
    )
