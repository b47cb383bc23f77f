"""What a metric declares, and what it is computed from: the entries of the metrics registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeVar

import numpy as np

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.evaluate.metrics import METRICS, rows
from routeyard.pipelines.evaluate.metrics.evaluation_data import EvaluationData
from routeyard.pipelines.evaluate.metrics.selection import Choice
from routeyard.pipelines.routers.base import no_chances
from routeyard.pipelines.routers.listed import Scale

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


@dataclass(frozen=True)
class MetricSpec:
    """One metric, as the registry, the documentation and `evaluate` know it.

    Attributes:
        name: its row's name in metrics.parquet, up to a `[…]`.
        direction: whether `higher` or `lower` is better, or `neither`.
        unit: unit of the value.
        source: paper and the place in it.
        says: the definition in one line.
        needs: what a release or an evaluation must have beyond labels: `costs`,
            `usd`, `tokens`, `pair`, `probabilities`, `clock`, `picks`, `ood`,
            `seeds`, `positional` (of the router). Without it the row is absent.
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
