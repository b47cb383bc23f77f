"""Collection in shards: one task per model and range of queries, on any task runner.

Each shard takes an equal share of its provider's limits, and holds as much of
the provider's Prefect limit while it asks, so that the limits hold in sum over
all workers. What is asked of whom does not depend on the shards, and nothing is
asked twice: every shard goes through the ledger, which also lets one that was
killed go on where it was.
"""

from __future__ import annotations

import uuid
from typing import Any

from routeyard.flows.tasks.responses import asked_about
from routeyard.flows.tracking.log import log
from routeyard.flows.tracking.retries import AFTER_CALLS
from routeyard.flows.tracking.run import Deferred, each
from routeyard.flows.workspace.shares import (
    at_server,
    collector_slot,
    collectors,
    open_ledger,
    provider_slots,
    share,
    sharers,
)
from routeyard.flows.workspace.stage_folders import BuildContext, StageResult
from routeyard.flows.workspace.tables import read
from routeyard.schemas.recipe import Collect, Pool


def ask_in_shards(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    models: StageResult | None = None,
) -> None:
    """Ask what the ledger lacks, each model's queries in `context.shards` ranges.

    `context.jobs` shards work at the same time. What is still missing afterwards is left to
    the collect stage, which runs next and finds nothing to ask when every shard was answered.
    """
    from routeyard.flows import console
    from routeyard.pipelines.calls.canary import END, START
    from routeyard.pipelines.collect.collect import ask_canaries
    from routeyard.pipelines.collect.plan import cuts, plan
    from routeyard.schemas.recipe.collect import Canary

    if collect.transport == "batch":
        why = "not cut into shards: batches are cut by 'collect.batch'"
        log(context.benchmark, "collect", why)
        return
    pool = at_server(pool)
    run = uuid.uuid4().hex[:12]
    with open_ledger(context.root) as ledger:
        table = read(queries, "queries")
        planned = plan(table, pool, collect, ledger, **asked_about(context, queries))
        parts = [
            (model.model.model_id, start, stop)
            for model in planned.models
            for start, stop in cuts(len(model.rows), context.shards)
            if model.missing[start:stop].any()
        ]
        if not parts:
            return
        with collector_slot(count := collectors()):
            ask_canaries(planned, ledger, run, START)
            quiet = collect.but(canary=Canary())
            given = [
                {
                    "context": context,
                    "pool": pool,
                    "collect": quiet,
                    "queries": queries,
                    "model_id": model_id,
                    "rows": (start, stop),
                    "sharers": sharers(_served(pool, model_id), collect, count, context.jobs),
                    "shard": (number, len(parts)),
                }
                for number, (model_id, start, stop) in enumerate(parts, 1)
            ]
            with console.counter("collect", "shards") as count_shards:
                each(ask_shard_task, given, processes=context.jobs, on_done=count_shards)
            ask_canaries(planned, ledger, run, END)


def ask_shard(
    context: BuildContext,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    model_id: str,
    rows: tuple[int, int],
    sharers: int,
    shard: tuple[int, int],
) -> dict[str, Any]:
    """Ask one model a range of the queries it covers; JSON-ready figures of what came.

    Args:
        rows: First and one past the last, counted among the model's covered queries.
        sharers: Shards among which the provider's limits are divided.
    """
    from routeyard.pipelines.collect.collect import collect as ask_planned
    from routeyard.pipelines.collect.coverage import covered
    from routeyard.pipelines.collect.plan import plan

    table = read(queries, "queries")
    # Coverage is drawn over the whole pool.
    number = [one.model_id for one in pool.models].index(model_id)
    drawn = covered(table, len(pool.models), collect.coverage)[number][slice(*rows)]
    ours, asking = share(_served(pool, model_id), collect, sharers)
    # The bound is the benchmark's and is kept in the ledger; other models' own bounds are not ours.
    own = {name: usd for name, usd in asking.budget.models.items() if name == model_id}
    asking = asking.but(budget=asking.budget.but(models=own))
    with open_ledger(context.root) as ledger, provider_slots(ours):
        planned = plan(table, ours, asking, ledger, rows=[drawn], **asked_about(context, queries))
        text = f"{model_id}: {planned.missing:,} answers to ask"
        log(context.benchmark, "collect", text, shard=shard)
        done = ask_planned(planned, ledger)
    missing = sum(done.missing.values())
    why = "; ".join(done.paused.values())
    text = f"{model_id}: {planned.missing - missing:,} answers, {missing:,} missing"
    log(context.benchmark, "collect", f"{text} ({why})" if why else text, shard=shard)
    return done.figures


# The plain function keeps its own name: worker processes find it by that.
ask_shard_task = Deferred(
    "task", ask_shard, {"name": "collect shard", "timeout_seconds": 24 * 3600.0, **AFTER_CALLS}
)


def _served(pool: Pool, model_id: str) -> Pool:
    """The pool of one model and its provider."""
    from routeyard.pipelines.collect.settings import provider_of

    model = next(one for one in pool.models if one.model_id == model_id)
    return pool.but(models=[model], providers=[provider_of(model, pool)])
