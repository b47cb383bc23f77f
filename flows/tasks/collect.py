"""The collect stage: ask what the ledger lacks, or import what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from prefect import task

from flows.tasks.recorded import recorded_task, write_by_model
from flows.tracking.log import log
from flows.tracking.retries import AFTER_CALLS
from flows.tracking.run import call
from flows.workspace.shares import at_server, collectors, open_ledger, seat, share, slots
from flows.workspace.stage_folders import PROBING, StageResult, Stale, run_stage
from flows.workspace.tables import read
from pipelines.errors import BudgetReached, GateFailed, ProviderError
from schemas.recipe import Recipe

_DAY_S = 24 * 3600.0


def collect_stage(
    recipe: Recipe,
    base: Path,
    root: Path,
    queries: StageResult,
    pool: StageResult,
    *,
    shards: int = 1,
    jobs: int = 1,
) -> StageResult:
    """Responses of the recipe's provider; asked by one process, or in shards by `jobs`."""
    if recipe.collect.provider == "recorded":
        return call(  # type: ignore[no-any-return]
            recorded_task,
            recipe=recipe,
            base=str(base),
            root=str(root),
            queries=queries,
            pool=pool,
        )
    if recipe.collect.agent is not None:
        from flows.tasks.agent import agent_task

        return call(  # type: ignore[no-any-return]
            agent_task, recipe=recipe, base=str(base), root=str(root), queries=queries, pool=pool
        )
    if recipe.collect.strategy == "informative":
        from flows.tasks.informative import ask_in_rounds

        return ask_in_rounds(recipe, root, queries, pool, jobs=jobs)
    if shards > 1 and not PROBING.get():
        from flows.tasks.collect_shards import ask_in_shards

        ask_in_shards(recipe, root, queries, shards=shards, at_once=jobs)
    return call(ask_task, recipe=recipe, root=str(root), queries=queries, pool=pool)  # type: ignore[no-any-return]


@task(name="collect", persist_result=True, timeout_seconds=_DAY_S, **AFTER_CALLS)
def ask_task(
    recipe: Recipe,
    root: str,
    queries: StageResult,
    pool: StageResult,
    rows: list[list[int]] | None = None,
) -> StageResult:
    """Ask the pool for what the ledger lacks; write one response file per model.

    Args:
        rows: Rows of the questions that each model of the pool is asked; null for what
            the recipe's coverage says.
    """
    import numpy as np

    from flows.console.progress import collecting
    from pipelines.collect.collect import collect, responses_table
    from pipelines.collect.plan import plan

    table = read(queries, "queries")
    whole = at_server(recipe.pool)
    pool_share, collect_share = share(whole, recipe.collect, seats := collectors())
    with open_ledger(Path(root)) as ledger:
        drawn = None if rows is None else [np.array(one, dtype=np.int32) for one in rows]
        planned = plan(table, pool_share, collect_share, ledger, rows=drawn, benchmark=recipe.name)
        if planned.missing and PROBING.get():
            raise Stale("collect", {"missing": planned.missing})
        if planned.missing:
            tell = partial(log, recipe.name, "collect")
            with seat(seats), slots(pool_share), collecting(also=tell) as show:
                collected = collect(planned, ledger, on_progress=show)
            _check_complete(recipe, root, collected)
        responses = responses_table(planned, ledger)
    check_answered(recipe, root, responses)

    def make(folder: Path) -> Mapping[str, Any]:
        write_by_model(responses, folder)
        return {"responses": responses.num_rows}

    return run_stage(
        Path(root),
        "collect",
        parameters=recipe.collect.model_dump(mode="json"),
        inputs={
            "queries": queries.fingerprint,
            "pool": pool.fingerprint,
            "answers": answers_fingerprint(responses),
        },
        make=make,
        benchmark=recipe.name,
    )


def answers_fingerprint(responses: Any) -> str:
    """What was answered, whenever it was: measured times do not enter."""
    from pipelines.release.fingerprint import content
    from schemas.manifest import MEASURED_COLUMNS

    return content(responses, without=MEASURED_COLUMNS)


def _check_complete(recipe: Recipe, root: str, collected: Any) -> None:
    """Stop when answers are missing: a label matrix with holes must be asked for, not met."""
    if not collected.missing:
        return
    total = sum(collected.missing.values())
    models = ", ".join(f"{model} {n:,}" for model, n in sorted(collected.missing.items()))
    why = "; ".join(
        [*([collected.stopped] if collected.stopped else []), *collected.paused.values()]
    )
    kind = BudgetReached if collected.out_of_budget else ProviderError
    raise kind(
        f"{total:,} answers are still missing ({models}): {why or 'calls failed'}",
        where=f"benchmark {recipe.name}; what arrived is in the ledger",
        next_step=f"mend the cause and run the same command again (--workspace {root}): only "
        "what is missing will be asked",
    )


def check_answered(recipe: Recipe, root: str, responses: Any) -> None:
    """Say which pairs were given up, and stop where the recipe wants none of them."""
    import pyarrow.compute as pc

    gone = responses.filter(pc.equal(responses.column("status"), "unanswered"))
    if not gone.num_rows:
        return
    counts = gone.group_by("model_id").aggregate([("query_id", "count")]).to_pylist()
    models = ", ".join(
        f"{row['model_id']} {row['query_id_count']:,}"
        for row in sorted(counts, key=lambda row: str(row["model_id"]))
    )
    policy = recipe.collect.unanswered
    said = f"{gone.num_rows:,} pairs were billed {policy.after} times and never answered ({models})"
    if policy.release == "go_on":
        log(recipe.name, "collect", f"{said}: unanswered, counted neither right nor wrong")
        return
    raise GateFailed(
        said,
        where=f"benchmark {recipe.name}, collect.unanswered.release: stop",
        next_step="raise 'collect.unanswered.after' to ask them again, write 'release: go_on' to "
        f"release without them, or take the queries out (--workspace {root})",
    )
