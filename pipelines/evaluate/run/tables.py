"""Tables of an evaluation beside its metrics: profiles, exchanges, choices, facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.evaluate.router_result import RouterResult
from routeyard.pipelines.evaluate.rows import table
from routeyard.pipelines.evaluate.run.left_out import costs_lacking, missing
from routeyard.pipelines.evaluate.run.sub_pool import SubPool
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.question_columns import unseen_images
from routeyard.pipelines.matrix.ranking import counts_of
from routeyard.pipelines.matrix.row_blocks import sums_of
from routeyard.pipelines.metrics.baselines import query_oracle, task_oracle
from routeyard.pipelines.metrics.evaluation_data import EvaluationData, cheapest_and_dearest
from routeyard.pipelines.metrics.plateau import exchange, hard_subset, selection_profile
from routeyard.pipelines.metrics.selection import at_choice
from routeyard.schemas.intervals import order_undecided


def profiles(data: EvaluationData, measured: Sequence[RouterResult]) -> pa.Table:
    hard = hard_subset(data.test.decided, data.best_on_test)
    on_hard = {
        one.router: selection_profile(one.choice[hard], data.test.n_models)
        for one in measured
        if hard.any()
    }
    return table(
        (
            {
                "router": one.router,
                "split": data.split,
                "model_id": name,
                "share": float(one.profile[k]),
                "hard_share": float(on_hard[one.router][k]) if hard.any() else None,
            }
            for one in measured
            for k, name in enumerate(data.test.model_ids)
        ),
        "profiles",
    )


def exchanges(data: EvaluationData, measured: Sequence[RouterResult]) -> pa.Table:
    ordered = sorted(measured, key=lambda one: one.router)
    return table(
        (
            {
                "first": a.router,
                "second": b.router,
                "split": data.split,
                **asdict(exchange(data.test.decided, a.choice, b.choice)),
            }
            for a, b in combinations(ordered, 2)
        ),
        "exchanges",
    )


def choices(data: EvaluationData, measured: Sequence[RouterResult]) -> pa.Table:
    asked = pa.array(data.test.query_ids, pa.string())
    models = pa.array(data.test.model_ids, pa.string())
    parts = [
        pa.table(
            {
                "query_id": asked,
                "router": pa.repeat(pa.scalar(one.router, pa.string()), len(asked)),
                "model_id": models.take(pa.array(one.choice)),
                "score": pa.array(at_choice(data.test.labels, one.choice)),
            }
        )
        for one in measured
    ]
    return pa.concat_tables(parts)


def facts(
    core: Core,
    data: EvaluationData,
    scheme: str,
    resamples: int,
    seed: int,
    cluster: str | None,
    pair: tuple[str, str] | None,
    pools: Sequence[SubPool] = (),
) -> dict[str, Any]:
    y = data.test.labels
    labelled = sums_of(lambda part: ~np.isnan(part), y)
    right, n = sums_of(np.nan_to_num, y), max(data.test.n_queries, 1)
    told = {
        "scheme": scheme,
        "split": data.split,
        "n_train": len(data.train.queries),
        "n_validation": 0 if data.train.validation is None else len(data.train.validation.queries),
        "n_test": data.test.n_queries,
        "n_models": core.n_models,
        "coverage": data.test.coverage,
        "measures": list(data.prices),
        "cost_range": {name: list(cheapest_and_dearest(data, name)[1:]) for name in data.prices},
        "costs_lacking": costs_lacking(core, data),
        "leaked": 0 if data.leaked is None else int(data.leaked.sum()),
        "sub_pools": {pool.measure: pool.facts for pool in pools},
        "best_single": core.model_ids[data.single],
        # On so many test questions a router can be compared with it.
        "n_compared": int((~np.isnan(y[:, data.single])).sum()),
        "labelled": dict(zip(core.model_ids, labelled.tolist(), strict=True)),
        # Accuracy on the test questions if all labels that are missing were 0, or 1.
        "bounds": {
            name: [float(total / n), float((total + n - k) / n)]
            for name, total, k in zip(core.model_ids, right, labelled, strict=True)
        },
        "best_on_test": core.model_ids[data.best_on_test],
        # Models whose order with that model is open for want of labels, and for that alone.
        "order_undecided": {
            part: order_undecided(counts_of(labels, core.model_ids), core.model_ids[first])
            for part, labels, first in (
                ("train", data.train.labels, data.single),
                ("test", y, data.best_on_test),
            )
        },
        "encoder": core.encoder,
        "oracle_accuracy": float(at_choice(y, query_oracle(y)).mean()),
        "task_oracle_accuracy": float(
            at_choice(y, task_oracle(y, data.test.tasks, data.price, data.order)).mean()
        ),
        "resamples": resamples,
        "seed": seed,
        "clustered_by": cluster,
        "pair": None if pair is None else {"small": pair[0], "large": pair[1]},
    }
    unseen = unseen_images(data.test.metadata)
    return {**told, "missing": [*missing(told), *filter(None, [unseen])]}
