"""Routers fitted and asked: scores on the test questions, spread over seeds, time per decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.rows import MetricRow, metric
from routeyard.pipelines.evaluate.run.orders import order_range
from routeyard.pipelines.evaluate.significance import seed_spread
from routeyard.pipelines.matrix.memmap import on_disk_if_large
from routeyard.pipelines.matrix.row_blocks import every
from routeyard.pipelines.metrics.evaluation_data import EvaluationData
from routeyard.pipelines.metrics.selection import at_choice, best
from routeyard.pipelines.routers.base import Router, no_chances, traits_of, unlike_published
from routeyard.pipelines.routers.listed import Scale

#: Makes a fresh router for a seed.
Maker = Callable[[int], Router]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Scores (n, m) by router, of the first seed; rows over seeds; seconds per decision.

    `no_chances`: router whose traits call its scores chances → what keeps them from it.
    `not_as_published`: router → what of its published settings its fit could not honour.
    `scales`: router → what it says that its scores mean.
    """

    scores: dict[str, Floats]
    spread: list[MetricRow]
    seconds: dict[str, float]
    no_chances: dict[str, str]
    not_as_published: dict[str, tuple[str, ...]]
    scales: dict[str, Scale]


def fitted(
    data: EvaluationData,
    routers: Mapping[str, Maker],
    seeds: int,
    clock: Callable[[], float] | None = None,
) -> Fitted:
    """Fit every router on train and ask it about the test questions.

    Args:
        clock: seconds of a clock that only goes forward; None times nothing.

    Raises:
        BadInput: a router's scores have the wrong shape or are not finite.
    """
    queries, shape = data.test.queries(), (data.test.n_queries, data.test.n_models)
    scores: dict[str, Floats] = {}
    spread: list[MetricRow] = []
    seconds: dict[str, float] = {}
    wrong_scale: dict[str, str] = {}
    unlike: dict[str, tuple[str, ...]] = {}
    scales: dict[str, Scale] = {}
    for name, make in routers.items():
        reached = []
        for seed in range(seeds):
            try:
                router = make(seed)
                router.fit(data.train)
                before = clock() if clock is not None else 0.0
                found = np.asarray(router.scores(queries), dtype=np.float64)
            except BadInput as error:
                # "this router" is one of several here.
                error.where = f"router {name!r}" + (f", {error.where}" if error.where else "")
                raise
            if clock is not None:
                seconds.setdefault(name, (clock() - before) / max(shape[0], 1))
            if found.shape != shape or not every(np.isfinite, found):
                wrong = "are not finite" if found.shape == shape else f"have shape {found.shape}"
                raise BadInput(
                    f"the scores of router {name!r} {wrong}",
                    next_step=f"`scores` returns {shape[0]} × {shape[1]} finite numbers, "
                    "columns in the order of `train.model_ids`",
                )
            if name not in scores:
                scores[name] = on_disk_if_large(found)
                unlike |= {name: unlike_published(router)} if unlike_published(router) else {}
                scales[name] = traits_of(router).scale
                beyond = no_chances(found)
                if beyond is not None and scales[name] == "probability":
                    wrong_scale[name] = beyond
            if seeds > 1:
                reached.append(_accuracy(data, found))
        spread += order_range(data, name, make, 0)
        if reached:
            mean, deviation = seed_spread(reached)
            spread += [
                metric(name, "accuracy_seed_mean", data.split, mean),
                metric(name, "accuracy_seed_sd", data.split, deviation),
            ]
    return Fitted(scores, spread, seconds, wrong_scale, unlike, scales)


def _accuracy(data: EvaluationData, scores: Floats) -> float:
    """Accuracy of the highest score, cost disregarded."""
    choice = best(scores, data.available(), data.order)
    return float(at_choice(data.test.labels, choice).mean())
