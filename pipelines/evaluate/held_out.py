"""Tasks and models held out of training: what a router loses on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from routeyard.pipelines.common.arrays import Bools, Floats, Ints, mean_costs, ranked
from routeyard.pipelines.common.matrix import Core, Examples, Queries
from routeyard.pipelines.common.pool import members
from routeyard.pipelines.evaluate.fit import Fit, PredictionStore
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval
from routeyard.pipelines.evaluate.metrics.selection import at_choice, best, best_single
from routeyard.pipelines.routers.base import Router
from routeyard.schemas.errors import BadInput

# Out of distribution: task groups that a router has not seen in training.

#: Test questions below which a group is skipped.
AT_LEAST = 20


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


def train_on_group(core: Core, scheme: str, patterns: Sequence[str]) -> Core:
    """The core with a scheme that trains on one group of questions and tests on all others.

    CSCR, section 4.2.2: train and validation questions inside the group, test questions
    outside of it.

    Args:
        patterns: as `routeyard.pipelines.common.pool.members` takes them.

    Raises:
        BadInput: the group holds no train question, or no test question is outside of it.
    """
    inside = _members(core, patterns)
    split = core.splits[scheme]
    parts = np.where((split == "test") ^ inside, split, "")
    if not np.any(parts == "train") or not np.any(parts == "test"):
        raise BadInput(
            f"a group of {int(inside.sum())} of {core.n_queries} questions leaves none to train "
            "on or none to test on",
            next_step=f"tasks: {', '.join(np.unique(core.tasks)[:20])}",
        )
    return replace(core, splits={**core.splits, scheme: parts})


def _members(core: Core, patterns: Sequence[str]) -> Bools:
    columns = [core.tasks, core.domains] + ([] if core.sources is None else [core.sources])
    return members(patterns, columns, core.metadata)


def held_out_groups(
    core: Core,
    scheme: str,
    routers: Mapping[str, Callable[[], Router]],
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    store: PredictionStore | None = None,
) -> list[OutOfDistribution]:
    """Leave each group's questions out of train and validation, and test on its test questions.

    Groups with fewer than `AT_LEAST` test questions are skipped; categories of a named group never.

    Args:
        groups: named groups instead of the domains (of the tasks where there is one domain):
            name → names or patterns (`mmlu_*`) of tasks, domains or sources, in any case, or
            `field=pattern` for a field of the questions' metadata (`subject=*physics`). A named
            group is also shown category by category (`math/gsm8k`, as RouterBench+, Table 5), and
            the other way round: `not math` is trained on the group alone and tested on the rest
            (CSCR, appendix D.2.1, STEM and Non-STEM).

    Raises:
        BadInput: a named group holds no question, or every one.
    """
    whole = core.training(scheme)
    inside = {name: Fit(make, whole, store) for name, make in routers.items()}
    results = []
    for part in _parts(core, groups):
        rest = core.take(np.flatnonzero(~part.held))
        if not np.any(rest.splits[scheme] == "train"):
            continue
        tests = [(name, mask) for name, mask, least in part.tests
                 if tested(core, scheme, mask).n_queries >= least]  # fmt: skip
        if not tests:
            continue
        train = rest.training(scheme)
        outside = {name: Fit(make, train, store) for name, make in routers.items()}
        for group, mask in tests:
            test = tested(core, scheme, mask)
            draws = Draws(test.n_queries, resamples, seed)
            heuristic = best_single(train.labels, price_of(train))
            for name in routers:
                known = choices_of(inside[name], test, whole)
                new = choices_of(outside[name], test, train)
                results.append(row_of(name, group, test, known, new, heuristic, draws))
    return results


@dataclass(frozen=True, eq=False)
class _Part:
    """A group of questions, and the categories it is shown by."""

    name: str
    held: Bools
    categories: Mapping[str, Bools]

    @property
    def tests(self) -> list[tuple[str, Bools, int]]:
        """(name, questions, least number of them) of what is tested."""
        whole = [(self.name, self.held, AT_LEAST)]
        return whole + [(f"{self.name}/{k}", mask, 1) for k, mask in self.categories.items()]


def _parts(core: Core, groups: Mapping[str, Sequence[str]] | None) -> list[_Part]:
    if groups is None:
        names = core.domains if len(np.unique(core.domains)) > 1 else core.tasks
        return [_Part(str(name), names == name, {}) for name in np.unique(names)]
    parts = []
    for name, patterns in groups.items():
        held = _members(core, patterns)
        if not held.any() or held.all():
            which = "no question" if not held.any() else "every question"
            raise BadInput(
                f"out-of-distribution group {name!r} ({', '.join(patterns)}) holds {which}",
                next_step=f"tasks: {', '.join(np.unique(core.tasks)[:20])}",
            )
        categories = {
            str(task): held & (core.tasks == task) for task in np.unique(core.tasks[held])
        }
        parts += [_Part(name, held, categories), _Part(f"not {name}", ~held, {})]
    return parts


def tested(core: Core, scheme: str, mask: Bools) -> Core:
    rows = core.rows(scheme, "test")
    return core.take(rows[mask[rows]]).labelled()


def averages(rows: list[OutOfDistribution]) -> list[OutOfDistribution]:
    """ID and OOD averages of each router over its groups, every group counting once.

    The interval is over groups treated as independent: their half-widths add
    in squares.
    """
    out = []
    for name in sorted({row.router for row in rows}):
        mine = [row for row in rows if row.router == name and _whole(row.group)]
        if not mine:
            continue
        means: dict[str, Any] = {
            name: float(np.mean([getattr(row, name) for row in mine]))
            for name in ("id_accuracy", "ood_accuracy", "change", "agreement")
        }
        change = means["change"]
        below = float(np.sqrt(np.sum([(row.change - row.low) ** 2 for row in mine])) / len(mine))
        above = float(np.sqrt(np.sum([(row.high - row.change) ** 2 for row in mine])) / len(mine))
        out.append(
            replace(
                mine[0],
                group="average",
                n=sum(row.n for row in mine),
                low=change - below,
                high=change + above,
                **means,
            )
        )
    return out


def _whole(group: str) -> bool:
    """Not one category of a group, nor its reverse, nor unseen models."""
    return "/" not in group and not group.startswith(("unseen models", "not "))


def price_of(train: Examples) -> Floats:
    if "usd" in train.costs:
        return mean_costs(train.costs["usd"])
    return np.zeros(len(train.model_ids))


def choices_of(router: Fit, test: Core, train: Examples, among: Ints | None = None) -> Ints:
    """(n,) choices of all models, or of those at `among` only."""
    available = ~np.isnan(test.labels)
    if among is not None:
        some = np.zeros_like(available)
        some[:, among] = available[:, among]
        available = some
    order = ranked(train.labels, price_of(train))
    return best(router.scores(test.queries()), available, order)


def row_of(
    name: str, group: str, test: Core, inside: Ints, outside: Ints, heuristic: int, draws: Draws
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


# Unseen models: what it costs a router not to have known some models while training.


def unseen_models(
    core: Core,
    scheme: str,
    unseen: tuple[str, ...],
    routers: Mapping[str, Callable[[], Router]],
    *,
    resamples: int = 10_000,
    seed: int = 0,
    store: PredictionStore | None = None,
) -> list[OutOfDistribution]:
    """What it costs not to have known some models while training.

    `id_accuracy` is that of the router trained on the whole pool, asking the
    same models.

    Three groups: `unseen models`, where it is trained on the seen models, can only ask those,
    and is compared with the whole pool; and where the labels of unseen models are hidden on the
    train questions and known on the validation questions alone (how a new model joins a pool:
    Universal Model Routing), `among unseen`, where it asks the unseen ones only (CSCR, section
    4.2.1), and `among all`, where it asks any.
    """
    seen = tuple(name for name in core.model_ids if name not in unseen)
    new = tuple(name for name in core.model_ids if name in unseen)
    if not new or not seen:
        return []
    everything = core.training(scheme)
    joined = _joined(everything, core.model_ids, new)
    full = {name: Fit(make, everything, store) for name, make in routers.items()}
    late = {name: Fit(make, joined, store) for name, make in routers.items() if joined}
    distributions: list[OutOfDistribution] = []
    for group, pool in (("", seen), (": among unseen", new), (": among all", core.model_ids)):
        at = np.array([core.model_ids.index(name) for name in pool])
        test = tested(core, scheme, ~np.all(np.isnan(core.labels[:, at]), axis=1))
        draws = Draws(test.n_queries, resamples, seed)
        few = core.with_models(pool).training(scheme)
        heuristic = int(at[best_single(few.labels, price_of(few))])
        for name, make in routers.items() if not group or late else ():
            if group:
                known = choices_of(full[name], test, everything, at)
                new_choice = choices_of(late[name], test, everything, at)
            else:
                known = choices_of(full[name], test, everything)
                alone = Fit(make, few, store)
                new_choice = at[choices_of(alone, test.with_models(pool), few)]
            row = row_of(name, f"unseen models{group}", test, known, new_choice, heuristic, draws)
            distributions.append(row)
    return distributions


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
        result = self._router.scores(replace(queries, signals=signals))
        return np.asarray(result, dtype=np.float64)[:, self._columns]


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
