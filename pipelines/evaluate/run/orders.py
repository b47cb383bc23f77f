"""Routers that copy a choice by position: how much the order of the models moves their result."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.evaluate.rows import MetricRow, metric
from routeyard.pipelines.experiment.experiment import Experiment
from routeyard.pipelines.experiment.fit import Fit
from routeyard.pipelines.metrics.evaluation_data import EvaluationData
from routeyard.pipelines.metrics.selection import at_choice, best

#: Orders that are tried.
ORDERS = 20


def order_range(data: EvaluationData, name: str, experiment: Experiment) -> list[MetricRow]:
    """Rows of the lowest and highest accuracy over `ORDERS` orders of the models, one of them
    best first and one worst first, with the first seed; none for a router without `positional`.
    """
    if not getattr(experiment.fit_of(name).made, "positional", False):
        return []
    m = data.test.n_models
    rng = np.random.default_rng(0)
    orders = [data.order, data.order[::-1], *(rng.permutation(m) for _ in range(ORDERS - 2))]
    found = []
    for order in orders:
        fit = Fit(experiment.maker(name), data.train.with_models(order), experiment.store)
        scores: Floats = np.empty((data.test.n_queries, m))
        scores[:, order] = fit.scores(data.test.queries().with_models(order))
        choice = best(scores, data.available(), data.order)
        found.append(float(at_choice(data.test.labels, choice).mean()))
    return [
        metric(name, "accuracy_order_low", data.split, min(found)),
        metric(name, "accuracy_order_high", data.split, max(found)),
    ]
