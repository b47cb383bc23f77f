"""Evaluation data, the same for every router: test questions, prices, references, draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from routeyard.pipelines.common.arrays import (
    Bools,
    Floats,
    Ints,
    by_rows,
    every,
    known,
    mean_costs,
    means_of,
    ranked,
    sums_of,
)
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core, first_measure, leaked
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws
from routeyard.pipelines.evaluate.metrics.selection import alone, at_choice, best_single
from routeyard.pipelines.routers.base import Examples


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """What is the same for every router.

    Attributes:
        split: how the rows are called.
        train: what routers learn from.
        test: test questions that have at least one label.
        draws: resamples shared by everything, which makes comparisons paired.
        prices: measure → (m,) mean train cost, what a router may know.
        measure: first of the cost measures, the one comparisons use.
        single: best single model on train, what one would deploy instead.
        best_on_test: most accurate single model on test, the target of QNC.
        leaked: (n,) test questions that are also in train; None where nobody looked.
    """

    split: str
    train: Examples
    test: Core
    draws: Draws
    prices: Mapping[str, Floats]
    measure: str | None
    single: int
    best_on_test: int
    leaked: Bools | None = None

    @property
    def price(self) -> Floats:
        """(m,) train cost of the first measure; zeros when no cost is known."""
        if self.measure is None:
            return np.zeros(self.test.n_models)
        return self.prices[self.measure]

    @property
    def clean(self) -> Bools | None:
        """(n,) test questions that are not also in train; None where all or none do."""
        if self.leaked is None or not self.leaked.any() or self.leaked.all():
            return None
        return ~self.leaked

    def available(self, measure: str | None = None) -> Bools:
        """(n, m) models that can be judged: label known, and cost where one is asked for."""
        if measure is None:
            return known(self.test.labels)
        return np.asarray(by_rows(_judged, self.test.labels, self.test.costs[measure]))

    def own(self, model: int, measure: str | None = None) -> Floats:
        """(n,) test scores of one model, or its costs of a measure; NaN where it cannot be
        judged. What is compared with a single model is compared over these questions."""
        y = self.test.labels[:, model]
        if measure is None:
            return np.ascontiguousarray(y)
        return np.where(np.isnan(y), np.nan, self.test.costs[measure][:, model])

    def own_costs(self, measure: str) -> Floats:
        """(n, m) the columns of `own` for a measure."""
        return np.asarray(by_rows(_own, self.test.labels, self.test.costs[measure]))

    def own_means(self, measure: str) -> Floats:
        """(m,) means of the columns of `own_costs`."""
        return means_of(_own, self.test.labels, self.test.costs[measure])

    @cached_property
    def order(self) -> Ints:
        """(m,) models, best on train first: which replaces a single model where it has no label."""
        return ranked(self.train.labels, self.price)

    def single_scores(self, model: int) -> Floats:
        """(n,) test scores when only one model is asked about every question.

        Where it cannot be judged the next best on train replaces it. For what has to be over
        all questions: the range of a curve's costs, random mixes, which model is dearest.
        """
        rows = by_rows(lambda *part: self._single(*part)[:, model], *self._pairs())
        return np.ascontiguousarray(rows)

    def single_means(self, measure: str | None = None) -> Floats:
        """(m,) mean scores, or costs of a measure, of every model asked so."""
        return means_of(self._single, *self._pairs(measure))

    def _pairs(self, measure: str | None = None) -> tuple[Floats, Floats]:
        """(n, m) labels, and what is looked up where they and it are known."""
        y = self.test.labels
        return y, y if measure is None else self.test.costs[measure]

    def _single(self, labels: Floats, values: Floats) -> Floats:
        return at_choice(values, alone(_judged(labels, values), self.order))


def _own(labels: Floats, costs: Floats) -> Floats:
    return np.where(np.isnan(labels), np.nan, costs)


def _judged(labels: Floats, costs: Floats) -> Bools:
    return ~np.isnan(labels) & ~np.isnan(costs)


def prepare(
    core: Core,
    scheme: str,
    *,
    split: str = "test",
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    look_for_leaks: bool = True,
) -> EvaluationData:
    """Ground for one scheme and split.

    Raises:
        BadInput: train or test is empty, no test question has a label, or
            `cluster` is unknown.
    """
    train = core.training(scheme)
    rows = core.rows(scheme, split)
    test = core.take(rows)
    labelled = np.flatnonzero(by_rows(lambda y: ~np.all(np.isnan(y), axis=1), test.labels))
    rows, test = rows[labelled], test.take(labelled)
    if not test.n_queries:
        raise BadInput(
            f"no question of split {split!r} has a label",
            next_step="label the responses first (`routeyard relabel`)",
        )
    groups = test.clusters(cluster)
    # A measure must be known beforehand (train) and be measurable (test) for every model.
    prices = {
        name: _rounded(mean_costs(cost))
        for name, cost in train.costs.items()
        if _of_every_model(cost)
        and _of_every_model(test.costs[name])
        and every(lambda y, c: _judged(y, c).any(axis=1), test.labels, test.costs[name])
    }
    measure = first_measure(prices)
    price = prices[measure] if measure else np.zeros(core.n_models)
    return EvaluationData(
        split=split,
        train=train,
        test=test,
        draws=Draws(test.n_queries, resamples, seed, groups),
        prices=prices,
        measure=measure,
        single=best_single(train.labels, price),
        best_on_test=best_single(test.labels, price),
        leaked=leaked(core, scheme, rows) if look_for_leaks else None,
    )


def _rounded(values: Floats) -> Floats:
    """To 12 significant digits: means of equal costs are equal, however their sum is ordered."""
    return np.array([float(f"{value:.12g}") for value in values])


def _of_every_model(costs: Floats) -> bool:
    return bool(np.all(sums_of(lambda part: ~np.isnan(part), costs) > 0))


def cheapest_and_dearest(data: EvaluationData, measure: str) -> tuple[int, float, float]:
    """The cheapest single model on test, and the mean test costs of cheapest and dearest."""
    means = data.single_means(measure)
    return int(np.argmin(means)), float(means.min()), float(means.max())
