"""Several releases at once: train on one or a mix of them, test on each of them and on others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.fit import Fit
from routeyard.pipelines.evaluate.held_out import Answering
from routeyard.pipelines.evaluate.run import Evaluation, evaluate
from routeyard.pipelines.routers.base import Examples, Router


def alike(cores: Mapping[str, Core]) -> dict[str, Core]:
    """The same releases with the models they share, in one order.

    Raises:
        BadInput: they share none.
    """
    shared = set.intersection(*(set(core.model_ids) for core in cores.values()))
    if not shared:
        raise BadInput(
            f"no model is in all of {', '.join(cores)}",
            next_step="name releases of one pool of models",
        )
    order = tuple(name for name in next(iter(cores.values())).model_ids if name in shared)
    return {name: core.with_models(order) for name, core in cores.items()}


def mixed(parts: Sequence[Examples]) -> Examples:
    """One set of examples of several, in their order; validation questions likewise.

    A question of several parts is kept in the first of them. Costs that not all
    know, and signals that not all have, are left out.

    Raises:
        BadInput: the parts have different models.
    """
    if len({part.model_ids for part in parts}) != 1:
        raise BadInput("examples of different pools cannot be mixed", next_step="see `alike`")
    first = parts[0]
    for part in parts[1:]:
        seen = set(first.queries.query_ids)
        new = [i for i, query in enumerate(part.queries.query_ids) if query not in seen]
        more = part.take(np.array(new, dtype=np.int64))
        costs = {
            name: np.concatenate([cost, more.costs[name]])
            for name, cost in first.costs.items()
            if name in more.costs
        }
        first = replace(
            first,
            queries=first.queries.followed_by(more.queries),
            labels=np.concatenate([first.labels, more.labels]),
            costs=costs,
        )
    held = [part.validation for part in parts if part.validation is not None]
    return replace(first, validation=mixed(held) if held else None)


def trained_elsewhere(train: Core, test: Core, scheme: str, test_scheme: str) -> Core:
    """One core: train and validation questions of one release, test questions of another.

    Columns that only one of them has are left out; no question of one repeats one of the other.

    Args:
        train, test: with the same models, see `alike`.
        scheme: of `train`, and of what is returned.
    """
    learnt = np.flatnonzero(np.isin(train.splits[scheme], ("train", "validation")))
    known = {train.query_ids[row] for row in learnt.tolist()}
    asked = [row for row in test.rows(test_scheme, "test") if test.query_ids[row] not in known]
    a, b = train.take(learnt), test.take(np.array(asked, dtype=np.int64))
    both = a.embeddings is not None and b.embeddings is not None

    def joined(name: str) -> Any:
        return np.concatenate([getattr(a, name), getattr(b, name)])

    return Core(
        query_ids=(*a.query_ids, *b.query_ids),
        model_ids=a.model_ids,
        labels=joined("labels"),
        costs={
            name: np.concatenate([cost, b.costs[name]])
            for name, cost in a.costs.items()
            if name in b.costs
        },
        tasks=joined("tasks"),
        domains=joined("domains"),
        splits={scheme: np.concatenate([a.splits[scheme], np.repeat("test", b.n_queries)])},
        groups=np.concatenate([a.groups, b.groups + a.groups.max(initial=0) + 1]),
        embeddings=joined("embeddings") if both else None,
        correct=joined("decided"),
        prompts=(*a.prompts, *b.prompts) if a.prompts and b.prompts else (),
        duplicates_known=a.duplicates_known and b.duplicates_known,
        kinds=a.kinds,
    )


def few(train: Examples, n: int, seed: int = 0) -> Examples:
    """n questions drawn by a seed, in their order; a larger draw contains a smaller one."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(train.queries))[:n])
    return train.take(rows)


def across(
    train: Examples,
    tests: Mapping[str, tuple[Core, str]],
    routers: Mapping[str, Callable[[], Router]],
    **how: Any,
) -> dict[str, Evaluation]:
    """Every router fitted once on `train` and measured on the test questions of each release.

    A test question that is a train question as well is left out.

    Args:
        train: see `mixed`.
        tests: release → (its core, its split scheme), models as in `train`.
        how: handed on to `evaluate`: `pair`, `resamples`, `seed`, ….
    """
    made = {name: Answering(Fit(make, train).router) for name, make in routers.items()}
    known = set(train.queries.query_ids)
    if train.validation is not None:
        known |= set(train.validation.queries.query_ids)
    result = {}
    for release, (core, scheme) in tests.items():
        split = core.splits[scheme].copy()
        twice = np.array([query in known for query in core.query_ids]) & (split == "test")
        split[twice] = ""
        own = replace(core, splits={scheme: split})
        fresh = {name: always(router) for name, router in made.items()}
        result[release] = evaluate(own, fresh, scheme=scheme, **how)
    return result


def always(router: Router) -> Callable[[int], Router]:
    """A maker of one router, fitted already, for every seed."""
    return lambda seed: router
