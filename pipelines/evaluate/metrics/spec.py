"""What a metric declares, and what it is computed from: the entries of the metrics registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal, TypeVar

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
from routeyard.pipelines.evaluate.metrics import METRICS, rows
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws
from routeyard.pipelines.evaluate.metrics.selection import Choice, alone, at_choice, best_single
from routeyard.pipelines.routers.base import Examples, no_chances
from routeyard.pipelines.routers.listed import Scale


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


Made = TypeVar("Made")

#: Which values are better.
Direction = Literal["higher", "lower", "neither"]
#: How often a metric is computed, and so what it is given.
Per = Literal["router", "measure", "family"]


@dataclass(frozen=True, eq=False)
class MetricValue:
    """A metric's value, NaN where it is undefined.

    Attributes:
        value: over the test questions.
        replicates: (r,) the same over resamples, for the interval; None for none.
        reason: why the value is undefined, for the reader.
        n: questions behind the value; None for all of the split.
    """

    value: float
    replicates: Floats | None = None
    reason: str = "undefined here"
    n: int | None = None


#: What a metric may need.
_NEEDS = frozenset(
    ("costs", "usd", "tokens", "pair", "probabilities", "clock", "picks", "ood", "seeds",
     "positional", "splits")
)  # fmt: skip


@dataclass(frozen=True)
class MetricSpec:
    """One metric, as the registry, the documentation and `evaluate` know it.

    Attributes:
        name: its row's name in metrics.parquet, up to a `[…]`.
        direction: whether `higher` or `lower` is better, or `neither`.
        unit: unit of the value.
        source: paper and the place in it.
        says: the definition in one line.
        needs: what a release or an evaluation must have beyond labels, of `_NEEDS`
            (`positional`: of the router), for readers of the list of metrics: where
            it is absent, `compute` returns None.
        per: `router`: `compute(Routed)`, one row. `measure`: `compute(Swept)`,
            one row `name[measure]` for each cost measure. `family`: computed
            with its family by `evaluate` (`compute` is None).
        compute: returns `MetricValue`, or None where what it needs is absent.
        read_by: what reads it; a metric of `metrics.yaml` that nothing reads is no `default`.
        default: whether every evaluation computes it; else one of all figures (`--all`) does.
    """

    name: str
    direction: Direction
    unit: str
    source: str
    says: str
    needs: tuple[str, ...] = ()
    per: Per = "router"
    compute: Callable[[Any], MetricValue | None] | None = None
    read_by: str = ""
    default: bool = True

    def __post_init__(self) -> None:
        if unknown := set(self.needs) - _NEEDS:
            raise BadInput(
                f"the metric {self.name!r} needs {', '.join(map(repr, sorted(unknown)))}, which no "
                "evaluation has",
                next_step=f"name some of {', '.join(sorted(_NEEDS))} as its 'needs'",
            )


def spec_of(name: str, **details: Any) -> MetricSpec:
    """The metric of a row of `metrics.yaml`; `details` are what the row leaves out."""
    row = {key: value for key, value in rows()[name].items() if key != "module"}
    row |= {"needs": tuple(row.get("needs", ())), "default": "read_by" in row}
    return MetricSpec(name, **{**row, **details})


def metric(compute: Callable[[Any], MetricValue | None]) -> MetricSpec:
    """Decorator: the metric that `<name>_metric` computes; its docstring is the definition."""
    definition = " ".join((compute.__doc__ or "").split()).removesuffix(".")
    return spec_of(compute.__name__.removesuffix("_metric"), says=definition, compute=compute)


@dataclass(frozen=True, eq=False)
class SharedFacts:
    """What all routers of one evaluation share, for metrics that look at the others.

    Attributes:
        largest: measure → largest mean cost any router's sweep reaches.
        frontier: measure → (cost, accuracy) points no setting of any router beats.
        pair: positions of the small and the large model, if there is a pair.
        reference: position of the model V_R compares with.
        seconds: router → seconds per decision, when a clock was handed over.
        usd_per_hour: price of the machine that routes, None when unknown.
        decision_usd: router → (n,) USD that its own decisions cost, where it states them.
        picks: router → (n,) 1 where a judge preferred its answer, NaN unjudged.
        scales: router → what it says that its scores mean; unnamed ones are chances.
        all: whether every metric is computed, not only those of the default.
    """

    largest: Mapping[str, float] = field(default_factory=dict)
    frontier: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)
    pair: tuple[int, int] | None = None
    reference: int | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    usd_per_hour: float | None = None
    decision_usd: Mapping[str, Floats] = field(default_factory=dict)
    picks: Mapping[str, Floats] = field(default_factory=dict)
    scales: Mapping[str, Scale] = field(default_factory=dict)
    all: bool = True

    def wants(self, name: str) -> bool:
        """Whether a metric, which may have a `[…]`, is among those that are computed."""
        return self.all or bool(METRICS.get(name.partition("[")[0]).default)


@dataclass(frozen=True, eq=False)
class Routed:
    """One router on the test questions, at any price.

    Attributes:
        data: the questions: `data.test.labels` (n, m) scores, NaN where unknown, `data.test.costs`
            of each measure (`usd`, `tokens`), `data.price` (m,) mean cost on train.
        scores: (n, m) predicted scores.
        choice: (n,) model asked without regard to cost.
    """

    data: EvaluationData
    router: str
    scores: Floats
    choice: Choice
    shared: SharedFacts
    _made: dict[Callable[[Routed], Any], Any] = field(default_factory=dict, repr=False)

    def once(self, compute: Callable[[Routed], Made]) -> Made:
        """What `compute` makes of this router, for several metrics computed once."""
        if compute not in self._made:
            self._made[compute] = compute(self)
        made: Made = self._made[compute]
        return made

    def decisions(self, measure: str) -> Floats:
        """(n,) what the router's own decisions cost in a measure; 0 where it states nothing."""
        stated = self.shared.decision_usd.get(self.router) if measure == "usd" else None
        return np.zeros(len(self.choice)) if stated is None else stated

    @property
    def no_chances(self) -> str | None:
        """Why the scores are not probabilities; None where they are."""
        scale = self.shared.scales.get(self.router, "probability")
        return no_chances(self.scores) if scale == "probability" else f"are each a {scale}"

    def mean(self, column: Floats, reason: str = "no such question in the split") -> MetricValue:
        """Mean of a column (n,) over the questions where it is known, resampled."""
        if np.isnan(column).all():
            return MetricValue(float("nan"), None, reason)
        replicates = self.data.draws.means(column[:, None])[:, 0]
        n = int((~np.isnan(column)).sum())
        return MetricValue(float(np.nanmean(column)), replicates, reason, n)


@dataclass(frozen=True, eq=False)
class BestSingleCurve:
    """A deferral curve and the best single model on test, over the questions that this model
    has a label and a known cost for.

    Attributes:
        cost, accuracy: (k,) mean cost and accuracy at each setting, cheapest first.
        costs, accuracies: (r, k) the same over resamples.
        best, best_cost: accuracy and mean cost of that model; `bests`, `best_costs` (r,)
            resampled.
        n: number of the questions.
    """

    cost: Floats
    accuracy: Floats
    costs: Floats
    accuracies: Floats
    best: float
    best_cost: float
    bests: Floats
    best_costs: Floats
    n: int


@dataclass(frozen=True, eq=False)
class Swept:
    """One router's deferral curve over one cost measure.

    Attributes:
        cost, accuracy: (k,) mean cost and accuracy at each setting, cheapest first.
        costs, accuracies: (r, k) the same over resamples.
        low, high: mean test cost of the cheapest and the dearest single model.
        cheapest: accuracy of the cheapest single model; `cheapests` (r,) resampled.
        against: the same curve beside the best single model, on the questions of both.
    """

    routed: Routed
    measure: str
    cost: Floats
    accuracy: Floats
    costs: Floats
    accuracies: Floats
    low: float
    high: float
    cheapest: float
    cheapests: Floats
    against: BestSingleCurve


# Metrics that `evaluate` computes together with their family, as `metrics.yaml` has them.
#
# `pipelines/evaluate` computes their values: `results` (at any price, and between two models),
# `sweep` (over cost), `held_out` (out of distribution), `run.fitted` (over seeds).


@cache
def __getattr__(name: str) -> MetricSpec:
    if name.startswith("_") or name not in rows():
        raise AttributeError(f"metrics.yaml declares no metric {name!r}")
    return spec_of(name, per="family")
