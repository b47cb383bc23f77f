"""Tables of an evaluation beside its metrics: profiles, exchanges, choices, facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.evaluate.baselines import query_oracle, task_oracle
from pipelines.evaluate.core import Core
from pipelines.evaluate.ground import Ground, cheapest_and_dearest
from pipelines.evaluate.measured import Measured
from pipelines.evaluate.plateau import exchange, hard_subset, selection_profile
from pipelines.evaluate.rows import EXCHANGES_SCHEMA, PROFILES_SCHEMA, table
from pipelines.evaluate.run.left_out import costs_lacking, missing
from pipelines.evaluate.selection import at_choice
from pipelines.large.rows import sums_of


def profiles(ground: Ground, measured: Sequence[Measured]) -> pa.Table:
    hard = hard_subset(ground.test.decided, ground.best_on_test)
    on_hard = {
        one.router: selection_profile(one.choice[hard], ground.test.n_models)
        for one in measured
        if hard.any()
    }
    return table(
        (
            {
                "router": one.router,
                "split": ground.split,
                "model_id": name,
                "share": float(one.profile[k]),
                "hard_share": float(on_hard[one.router][k]) if hard.any() else None,
            }
            for one in measured
            for k, name in enumerate(ground.test.model_ids)
        ),
        PROFILES_SCHEMA,
    )


def exchanges(ground: Ground, measured: Sequence[Measured]) -> pa.Table:
    ordered = sorted(measured, key=lambda one: one.router)
    return table(
        (
            {
                "first": a.router,
                "second": b.router,
                "split": ground.split,
                **asdict(exchange(ground.test.decided, a.choice, b.choice)),
            }
            for a, b in combinations(ordered, 2)
        ),
        EXCHANGES_SCHEMA,
    )


def choices(ground: Ground, measured: Sequence[Measured]) -> pa.Table:
    asked = pa.array(ground.test.query_ids, pa.string())
    models = pa.array(ground.test.model_ids, pa.string())
    parts = [
        pa.table(
            {
                "query_id": asked,
                "router": pa.repeat(pa.scalar(one.router, pa.string()), len(asked)),
                "model_id": models.take(pa.array(one.choice)),
                "score": pa.array(at_choice(ground.test.labels, one.choice)),
            }
        )
        for one in measured
    ]
    return pa.concat_tables(parts)


def facts(
    core: Core,
    ground: Ground,
    scheme: str,
    resamples: int,
    seed: int,
    cluster: str | None,
    pair: tuple[str, str] | None,
) -> dict[str, Any]:
    y = ground.test.labels
    told = {
        "scheme": scheme,
        "split": ground.split,
        "n_train": len(ground.train.queries),
        "n_validation": 0
        if ground.train.validation is None
        else len(ground.train.validation.queries),
        "n_test": ground.test.n_queries,
        "n_models": core.n_models,
        "coverage": ground.test.coverage,
        "measures": list(ground.prices),
        "cost_range": {
            name: list(cheapest_and_dearest(ground, name)[1:]) for name in ground.prices
        },
        "costs_lacking": costs_lacking(core, ground),
        "best_single": core.model_ids[ground.single],
        # On so many test questions a router can be compared with it.
        "n_compared": int((~np.isnan(y[:, ground.single])).sum()),
        "labelled": dict(
            zip(core.model_ids, sums_of(lambda part: ~np.isnan(part), y).tolist(), strict=True)
        ),
        "best_on_test": core.model_ids[ground.best_on_test],
        "oracle_accuracy": float(at_choice(y, query_oracle(y)).mean()),
        "task_oracle_accuracy": float(
            at_choice(y, task_oracle(y, ground.test.tasks, ground.price, ground.order)).mean()
        ),
        "resamples": resamples,
        "seed": seed,
        "clustered_by": cluster,
        "pair": None if pair is None else {"small": pair[0], "large": pair[1]},
    }
    return {**told, "missing": missing(told)}
