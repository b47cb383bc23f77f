"""Collection in shards: one task per model and range of queries, on any task runner.

Each shard takes an equal share of its provider's limits, and holds as much of
the provider's Prefect limit while it asks, so that the limits hold in sum over
all workers. What is asked of whom does not depend on the shards, and nothing is
asked twice: every shard goes through the ledger, which also lets one that was
killed go on where it was.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from prefect import task

from flows import console
from flows.tracking.log import log
from flows.tracking.retries import AFTER_CALLS
from flows.tracking.run import each
from flows.workspace.shares import at_server, collectors, open_ledger, seat, share, sharers, slots
from flows.workspace.stage_folders import StageResult
from flows.workspace.tables import read
from pipelines.calls.canary import END, START
from pipelines.collect.collect import ask_canaries, collect
from pipelines.collect.coverage import covered
from pipelines.collect.plan import cuts, plan
from pipelines.collect.settings import provider_of
from schemas.recipe import Pool, Recipe
from schemas.recipe.collect import Canary

_DAY_S = 24 * 3600.0


def ask_in_shards(
    recipe: Recipe, root: Path, queries: StageResult, *, shards: int, at_once: int
) -> None:
    """Ask what the ledger lacks, each model's queries in `shards` ranges.

    What is still missing afterwards is left to the collect stage, which runs
    next and finds nothing to ask when every shard was answered.

    Args:
        at_once: Shards that work at the same time: worker processes.
    """
    if why := _indivisible(recipe):
        log(recipe.name, "collect", f"not cut into shards: {why}")
        return
    pool = at_server(recipe.pool)
    recipe = recipe.model_copy(update={"pool": pool})
    table = read(queries, "queries")
    run = uuid.uuid4().hex[:12]
    with open_ledger(root) as ledger:
        planned = plan(table, pool, recipe.collect, ledger, benchmark=recipe.name)
        parts = [
            (model.model.model_id, start, stop)
            for model in planned.models
            for start, stop in cuts(len(model.rows), shards)
            if model.missing[start:stop].any()
        ]
        if not parts:
            return
        with seat(seats := collectors()):
            ask_canaries(planned, ledger, run, START)
            quiet = recipe.collect.model_copy(update={"canary": Canary()})
            common = {
                "recipe": recipe.model_copy(update={"collect": quiet}),
                "root": str(root),
                "queries": queries,
            }
            given = [
                {
                    **common,
                    "model_id": model_id,
                    "rows": (start, stop),
                    "sharers": sharers(_served(pool, model_id), recipe.collect, seats, at_once),
                    "shard": (number, len(parts)),
                }
                for number, (model_id, start, stop) in enumerate(parts, 1)
            ]
            with console.counter("collect", "shards") as count:
                each(ask_shard_task, given, processes=at_once, on_done=count)
            ask_canaries(planned, ledger, run, END)


def ask_shard(
    recipe: Recipe,
    root: str,
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
    table = read(queries, "queries")
    pool, asking = share(_served(recipe.pool, model_id), recipe.collect, sharers)
    # The bound is the benchmark's and is kept in the ledger; other models' own bounds are not ours.
    own = {name: usd for name, usd in asking.budget.models.items() if name == model_id}
    asking = asking.model_copy(update={"budget": asking.budget.model_copy(update={"models": own})})
    with open_ledger(Path(root)) as ledger, slots(pool):
        drawn = [_covers(table, recipe, model_id, rows)]
        planned = plan(table, pool, asking, ledger, rows=drawn, benchmark=recipe.name)
        log(recipe.name, "collect", f"{model_id}: {planned.missing:,} answers to ask", shard=shard)
        done = collect(planned, ledger)
    missing = sum(done.missing.values())
    why = "; ".join(done.paused.values())
    text = f"{model_id}: {planned.missing - missing:,} answers, {missing:,} missing"
    log(recipe.name, "collect", f"{text} ({why})" if why else text, shard=shard)
    return done.figures


# The plain function keeps its own name: worker processes find it by that.
ask_shard_task = task(name="collect shard", timeout_seconds=_DAY_S, **AFTER_CALLS)(ask_shard)


def _covers(table: Any, recipe: Recipe, model_id: str, rows: tuple[int, int]) -> Any:
    """Rows of the queries table that fall to a shard: coverage is drawn over the whole pool."""
    number = [one.model_id for one in recipe.pool.models].index(model_id)
    drawn = covered(table, len(recipe.pool.models), recipe.collect.coverage)
    return drawn[number][slice(*rows)]


def _served(pool: Pool, model_id: str) -> Pool:
    """The pool of one model and its provider."""
    model = next(one for one in pool.models if one.model_id == model_id)
    return pool.model_copy(update={"models": [model], "providers": [provider_of(model, pool)]})


def _indivisible(recipe: Recipe) -> str | None:
    """Why one process has to ask everything, if it has to."""
    if recipe.collect.transport == "batch":
        return "batches are cut by 'collect.batch'"
    return None
