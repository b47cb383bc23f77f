"""Routers asked: scores on the test questions, spread over seeds, time per decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.rows import MetricRow, metric
from routeyard.pipelines.evaluate.run.orders import order_range
from routeyard.pipelines.evaluate.significance import seed_spread
from routeyard.pipelines.experiment.experiment import Experiment
from routeyard.pipelines.experiment.fit import Fit
from routeyard.pipelines.matrix.memmap import on_disk_if_large
from routeyard.pipelines.metrics.evaluation_data import EvaluationData
from routeyard.pipelines.metrics.selection import at_choice, best
from routeyard.pipelines.routers.base import Queries, no_chances
from routeyard.pipelines.routers.listed import Scale


@dataclass(frozen=True, eq=False)
class Fitted:
    """Scores (n, m) by router, of the first seed; rows over seeds; seconds per decision.

    `no_chances`: router whose traits call its scores chances → what keeps them from it.
    `not_as_published`: router → what of its published settings its fit could not honour.
    `scales`: router → what it says that its scores mean.
    `published`: routers with the constants of their paper or its code.
    `on_encoder`: routers that read the vectors of the questions.
    `decision_usd`: router → (n,) USD that its own decisions cost, where it states them.
    `not_read`: router that is a table → its columns that nobody read.
    `validation`: router → accuracy on the validation questions, where it is known.
    """

    scores: dict[str, Floats]
    spread: list[MetricRow]
    seconds: dict[str, float]
    no_chances: dict[str, str]
    not_as_published: dict[str, tuple[str, ...]]
    scales: dict[str, Scale]
    published: set[str] = field(default_factory=set)
    on_encoder: set[str] = field(default_factory=set)
    validation: dict[str, float] = field(default_factory=dict)
    decision_usd: dict[str, Floats] = field(default_factory=dict)
    not_read: dict[str, list[str]] = field(default_factory=dict)

    @property
    def as_published(self) -> bool:
        """Whether all routers are in presets of their authors, who score all test questions."""
        return bool(self.scores) and self.published == set(self.scores)


def fitted(
    data: EvaluationData, experiment: Experiment, clock: Callable[[], float] | None = None
) -> Fitted:
    """Ask every router of an experiment about the test questions.

    Args:
        clock: seconds of a clock that only goes forward; None times nothing.

    Raises:
        BadInput: a router's scores have the wrong shape or are not finite.
    """
    queries = data.test.queries()
    told = Fitted({}, [], {}, {}, {}, {})
    for name in experiment.routers:
        reached = []
        for repeat in range(len(experiment.seeds)):
            fit = experiment.fit_of(name, repeat)
            try:
                found = fit.scores(queries, clock)
            except BadInput as error:
                # "this router" is one of several here.
                error.where = f"router {name!r}" + (f", {error.where}" if error.where else "")
                raise
            if fit.seconds is not None:
                told.seconds.setdefault(name, fit.seconds / max(len(queries), 1))
            if name not in told.scores:
                told.scores[name] = on_disk_if_large(found)
                if fit.record.not_as_published:
                    told.not_as_published[name] = fit.record.not_as_published
                # At once, while the fit is there: a stopped run goes on after it.
                if (validated := _on_validation(data, fit)) is not None:
                    told.validation[name] = validated
                told.scales[name] = fit.scale
                if "embeddings" in getattr(getattr(fit.made, "traits", None), "needs", ()):
                    told.on_encoder.add(name)
                if (own := decision_usd(fit.made, queries)) is not None:
                    told.decision_usd[name] = own
                if unread := getattr(fit.made, "unread", None):
                    told.not_read[name] = list(unread)
                if getattr(fit.made, "as_published", False):
                    told.published.add(name)
                beyond = no_chances(found)
                if beyond is not None and fit.scale == "probability":
                    told.no_chances[name] = beyond
            if len(experiment.seeds) > 1:
                reached.append(_accuracy(data, found))
        told.spread.extend(order_range(data, name, experiment))
        if reached:
            mean, deviation = seed_spread(reached)
            told.spread.extend(
                [
                    metric(name, "accuracy_seed_mean", data.split, mean),
                    metric(name, "accuracy_seed_sd", data.split, deviation),
                ]
            )
    return told


def decision_usd(router: Any, queries: Queries) -> Floats | None:
    """(n,) USD that a router's own decisions cost; None where it states nothing."""
    stated = getattr(router, "decision_usd", None)
    found: Floats | None = stated(queries) if callable(stated) else None
    return found


def _on_validation(data: EvaluationData, fit: Fit) -> float | None:
    """Accuracy of a fit on the validation questions; None without any, or where it
    cannot be asked about them, as a table of test questions.

    Who names one of several routers by its accuracy on the test questions names the luckiest;
    this is what one is chosen by.
    """
    held = data.train.validation
    if held is None or data.split != "test":
        return None
    held = held.take(np.flatnonzero(~np.isnan(held.labels).all(axis=1)))
    try:
        scores = fit.scores(held.queries)
    except BadInput:
        return None
    choice = best(scores, ~np.isnan(held.labels), data.order)
    return float(at_choice(held.labels, choice).mean()) if len(choice) else None


def _accuracy(data: EvaluationData, scores: Floats) -> float:
    """Accuracy of the highest score, cost disregarded."""
    choice = best(scores, data.available(), data.order)
    return float(at_choice(data.test.labels, choice).mean())
