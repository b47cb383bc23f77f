"""Out of distribution: task groups and models that a router has not seen in training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.baselines import best_single
from pipelines.evaluate.bootstrap import Draws, interval
from pipelines.evaluate.core import Core
from pipelines.evaluate.selection import at_choice, best, mean_costs
from pipelines.routers.base import Examples, Router

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OutOfDistribution:
    """One router on one held-out group.

    Attributes:
        group: task group, or `unseen models`.
        n: test questions of the group.
        id_accuracy: trained with the group (or with all models).
        ood_accuracy: trained without it, same questions.
        change: ood − id, with a paired interval.
        agreement: share of questions on which the router trained without the
            group chooses as the best-generalist heuristic does.
    """

    router: str
    group: str
    n: int
    id_accuracy: float
    ood_accuracy: float
    change: float
    low: float
    high: float
    agreement: float


def held_out_groups(
    core: Core,
    scheme: str,
    routers: Mapping[str, Callable[[], Router]],
    *,
    by: str = "domain",
    resamples: int = 10_000,
    seed: int = 0,
    at_least: int = 20,
) -> list[OutOfDistribution]:
    """Leave each group's questions out of train and validation, and test on its test questions.

    Args:
        by: `domain` or `task`; where there is only one domain, tasks are taken.
        at_least: groups with fewer test questions are skipped.
    """
    groups = core.domains if by == "domain" else core.tasks
    if len(np.unique(groups)) < 2:
        groups = core.tasks
    test = core.take(core.rows(scheme, "test"))
    test_groups = groups[core.rows(scheme, "test")]
    inside = {name: _fitted(make, core.training(scheme)) for name, make in routers.items()}
    found = []
    for group in np.unique(groups):
        part = test.take(np.flatnonzero(test_groups == group))
        part = part.take(np.flatnonzero(~np.all(np.isnan(part.labels), axis=1)))
        rest = core.take(np.flatnonzero(groups != group))
        if part.n_queries < at_least or not np.any(rest.splits[scheme] == "train"):
            continue
        train = rest.training(scheme)
        draws = Draws(part.n_queries, resamples, seed)
        for name, make in routers.items():
            outside = _fitted(make, train)
            found.append(_compared(name, str(group), part, train, inside[name], outside, draws))
    return found


def unseen_models(
    core: Core,
    scheme: str,
    unseen: tuple[str, ...],
    routers: Mapping[str, Callable[[], Router]],
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> list[OutOfDistribution]:
    """What it costs not to know some models: trained on the seen ones, it can only ask those.

    `ood_accuracy` is that of the router over the seen models; `id_accuracy`
    that of the same router trained on the whole pool.
    """
    seen = tuple(name for name in core.model_ids if name not in unseen)
    if not unseen or not seen:
        return []
    at = np.array([core.model_ids.index(name) for name in seen])
    test = core.take(core.rows(scheme, "test"))
    test = test.take(np.flatnonzero(~np.all(np.isnan(test.labels[:, at]), axis=1)))
    everything, few = core.training(scheme), core.with_models(seen).training(scheme)
    draws = Draws(test.n_queries, resamples, seed)
    found = []
    for name, make in routers.items():
        all_choice = _choose(_fitted(make, everything), test, everything)
        few_choice = at[_choose(_fitted(make, few), test.with_models(seen), few)]
        heuristic = int(at[best_single(few.labels, _price(few))])
        found.append(_row(name, "unseen models", test, all_choice, few_choice, heuristic, draws))
    return found


def averages(rows: list[OutOfDistribution]) -> list[OutOfDistribution]:
    """ID and OOD averages of each router over its groups, every group counting once.

    The interval is over groups treated as independent: their half-widths add
    in squares.
    """
    out = []
    for name in sorted({row.router for row in rows}):
        mine = [row for row in rows if row.router == name and row.group != "unseen models"]
        if not mine:
            continue
        change = float(np.mean([row.change for row in mine]))
        below = float(np.sqrt(np.sum([(row.change - row.low) ** 2 for row in mine])) / len(mine))
        above = float(np.sqrt(np.sum([(row.high - row.change) ** 2 for row in mine])) / len(mine))
        out.append(
            replace(
                mine[0],
                group="average",
                n=sum(row.n for row in mine),
                id_accuracy=float(np.mean([row.id_accuracy for row in mine])),
                ood_accuracy=float(np.mean([row.ood_accuracy for row in mine])),
                change=change,
                low=change - below,
                high=change + above,
                agreement=float(np.mean([row.agreement for row in mine])),
            )
        )
    return out


def _fitted(make: Callable[[], Router], train: Examples) -> Router:
    router = make()
    router.fit(train)
    return router


def _price(train: Examples) -> Floats:
    if "usd" in train.costs:
        return mean_costs(train.costs["usd"])
    return np.zeros(len(train.model_ids))


def _choose(router: Router, test: Core, train: Examples) -> NDArray[np.int64]:
    return best(router.scores(test.queries()), ~np.isnan(test.labels), _price(train))


def _compared(
    name: str,
    group: str,
    test: Core,
    train: Examples,
    inside: Router,
    outside: Router,
    draws: Draws,
) -> OutOfDistribution:
    heuristic = best_single(train.labels, _price(train))
    return _row(
        name,
        group,
        test,
        _choose(inside, test, train),
        _choose(outside, test, train),
        heuristic,
        draws,
    )


def _row(
    name: str,
    group: str,
    test: Core,
    inside: NDArray[np.int64],
    outside: NDArray[np.int64],
    heuristic: int,
    draws: Draws,
) -> OutOfDistribution:
    a, b = at_choice(test.labels, inside), at_choice(test.labels, outside)
    low, high = interval(draws.means((b - a)[:, None])[:, 0])
    return OutOfDistribution(
        router=name,
        group=group,
        n=test.n_queries,
        id_accuracy=float(a.mean()),
        ood_accuracy=float(b.mean()),
        change=float((b - a).mean()),
        low=low,
        high=high,
        agreement=float(np.mean(outside == heuristic)),
    )
