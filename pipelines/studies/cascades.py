"""What asking, looking at the answer and asking again costs and brings, beside routing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.cascade import Ran, cheapest_first, frugal, surest, verified
from routeyard.pipelines.matrix.core import Core, first_measure
from routeyard.pipelines.matrix.ranking import mean_costs
from routeyard.pipelines.metrics.baselines import best_single, query_oracle
from routeyard.pipelines.metrics.bootstrap import Draws
from routeyard.pipelines.metrics.selection import at_choice
from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.studies.study import StudyCell

#: Budgets per question, as multiples of the mean cost of the best single model.
BUDGETS = (0.25, 0.5, 1.0, 2.0)


def cells(context: StudyContext) -> Sequence[StudyCell]:
    """Accuracy, mean cost and models asked of each cascade on the test questions."""
    core, scheme = context.core, context.default_scheme()
    measure = first_measure(core.costs)
    assert measure is not None  # `needs` says so
    train, test = (_whole(core, core.rows(scheme, part), measure) for part in ("train", "test"))
    price = mean_costs(train.costs[measure])
    by_price = cheapest_first(train.labels, train.costs[measure])
    draws = Draws(test.n_queries, context.resamples, context.seed)
    y, cost = test.labels, test.costs[measure]
    single, top = best_single(train.labels, price), query_oracle(y, cost)
    alone, best = (_of(y, cost, np.asarray(who)) for who in (np.full(len(y), single), top))
    found = [*_row("best single model", alone, draws), *_row("oracle, asked at once", best, draws)]
    for stages in range(2, core.n_models + 1):
        done = verified(y, test.decided, cost, by_price[:stages])
        found += _row(f"verified, {stages} cheapest", done, draws)
    level = float(price[single])
    shown = {name: train.signals[name] for name in surest(train.signals)}
    for name in shown:
        if name not in surest(test.signals):
            continue
        on_train, on_test = surest(train.signals)[name], surest(test.signals)[name]
        budgets = level * np.array(BUDGETS)
        for share, one in zip(
            BUDGETS, frugal(train.examples(), on_train, measure, budgets), strict=True
        ):
            done = one.run(on_test, y, cost)
            models = " → ".join(core.model_ids[k] for k in one.order)
            found += _row(f"{name}, {share:g} × best single", done, draws, models)
    return found


def _whole(core: Core, rows: Ints, measure: str) -> Core:
    """The questions with every model's label and cost: a cascade may ask any of them."""
    part = core.take(rows)
    known = ~np.isnan(part.labels).any(axis=1) & ~np.isnan(part.costs[measure]).any(axis=1)
    if not known.any():
        raise BadInput(
            "no question has a label and a cost of every model, so no cascade can be followed",
            next_step="use a release whose models answered the same questions",
        )
    return part.take(np.flatnonzero(known))


def _of(labels: Floats, cost: Floats, choice: Ints) -> Ran:
    asked = np.ones(len(choice), dtype=np.int64)
    return Ran(choice, asked, at_choice(cost, choice), at_choice(labels, choice))


def _row(name: str, done: Ran, draws: Draws, models: str | None = None) -> list[StudyCell]:
    columns = np.stack([done.score, done.cost, done.asked.astype(np.float64)], axis=1)
    low, high = np.quantile(draws.means(columns), [0.025, 0.975], axis=0)
    units = (("accuracy", "percent"), ("mean cost", "number"), ("models asked", "number"))
    found = [
        StudyCell(name, title, float(columns[:, k].mean()), unit, float(low[k]), float(high[k]))  # type: ignore[arg-type]
        for k, (title, unit) in enumerate(units)
    ]
    return [*found, *([] if models is None else [StudyCell(name, "list", text=models)])]
