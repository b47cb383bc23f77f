"""Routers that copy a choice by position: how much the order of the models moves their result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.evaluate.rows import MetricRow, metric
from routeyard.pipelines.metrics.evaluation_data import EvaluationData
from routeyard.pipelines.metrics.selection import at_choice, best
from routeyard.pipelines.routers.base import Router

#: Orders that are tried.
ORDERS = 20


def order_range(
    data: EvaluationData, name: str, make: Callable[[int], Router], seed: int
) -> list[MetricRow]:
    """Rows of the lowest and the highest accuracy over `ORDERS` orders of the models, one of
    them best first and one worst first, with one seed; none for a router without `positional`.
    """
    if not getattr(make(seed), "positional", False):
        return []
    m = data.test.n_models
    rng = np.random.default_rng(seed)
    orders = [data.order, data.order[::-1], *(rng.permutation(m) for _ in range(ORDERS - 2))]
    found = []
    for order in orders:
        router = make(seed)
        router.fit(data.train.with_models(order))
        scores: Floats = np.empty((data.test.n_queries, m))
        scores[:, order] = router.scores(data.test.queries().with_models(order))
        choice = best(scores, data.available(), data.order)
        found.append(float(at_choice(data.test.labels, choice).mean()))
    return [
        metric(name, "accuracy_order_low", data.split, min(found)),
        metric(name, "accuracy_order_high", data.split, max(found)),
    ]
