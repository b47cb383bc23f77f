"""The collect stage of an agent: trajectories step by step, into `responses` and `steps`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from prefect import task

from flows.tasks.recorded import write_by_model
from flows.tracking.log import log
from flows.tracking.retries import AFTER_CALLS
from flows.workspace.shares import at_server, open_ledger, slots
from flows.workspace.stage_folders import PROBING, StageResult, Stale, run_stage, write_table
from flows.workspace.tables import read
from pipelines.errors import BudgetReached, ProviderError
from schemas.recipe import Recipe


@task(name="collect", persist_result=True, timeout_seconds=24 * 3600.0, **AFTER_CALLS)
def agent_task(
    recipe: Recipe, base: str, root: str, queries: StageResult, pool: StageResult
) -> StageResult:
    """Walk every trajectory to its end; what arrived is in the ledger when it stops before.

    Raises:
        BudgetReached, ProviderError: steps are missing.
    """
    from flows.console.progress import collecting
    from flows.tasks.collect import answers_fingerprint, check_answered
    from pipelines.collect.agent.rounds import AgentRun, walk
    from pipelines.collect.agent.search import corpus_of
    from pipelines.collect.agent.tables import tables_of
    from pipelines.io import files, named_files

    agent = recipe.collect.agent
    assert agent is not None
    table = read(queries, "queries")
    corpus = corpus_of(table, agent.search, base=Path(base))
    whole = at_server(recipe.pool)
    tell = partial(log, recipe.name, "collect")

    def gone(send: bool, show: Any = None) -> AgentRun:
        return walk(
            table, whole, recipe.collect, ledger, corpus,
            benchmark=recipe.name, send=send, on_progress=show,
        )  # fmt: skip

    with open_ledger(Path(root)) as ledger:
        walked = gone(False)
        if walked.missing and PROBING.get():
            raise Stale("collect", {"missing": sum(walked.missing.values())})
        if walked.missing:
            with slots(whole), collecting(also=tell) as show:
                walked = gone(True, show)
            _check_complete(recipe, root, walked)
    made = tables_of(walked.trajectories, recipe.pool)
    check_answered(recipe, root, made["responses"])

    def make(folder: Path) -> Mapping[str, Any]:
        write_by_model(made["responses"], folder)
        write_table(made["steps"], folder / "steps.parquet")
        return {
            "responses": made["responses"].num_rows,
            "steps": made["steps"].num_rows,
            "passages": len(corpus.passages),
        }

    inputs = {
        "queries": queries.fingerprint,
        "pool": pool.fingerprint,
        "answers": answers_fingerprint(made["responses"]),
        "steps": answers_fingerprint(made["steps"]),
    }
    if agent.search.file is not None:
        found = named_files.expand(
            agent.search.file, base=Path(base), where="collect.agent.search.file"
        )
        inputs["corpus"] = ",".join(files.sha256(one) for one in found)
    return run_stage(
        Path(root),
        "collect",
        parameters=recipe.collect.model_dump(mode="json"),
        inputs=inputs,
        make=make,
        benchmark=recipe.name,
    )


def _check_complete(recipe: Recipe, root: str, walked: Any) -> None:
    if not walked.missing:
        return
    total = sum(walked.missing.values())
    models = ", ".join(f"{model} {n:,}" for model, n in sorted(walked.missing.items()))
    kind = BudgetReached if walked.out_of_budget else ProviderError
    raise kind(
        f"{total:,} steps are still missing ({models}), and those that follow them: "
        f"{'; '.join(walked.stopped) or 'calls failed'}",
        where=f"benchmark {recipe.name}; what arrived is in the ledger",
        next_step=f"mend the cause and run the same command again (--workspace {root}): only "
        "what is missing will be asked",
    )


def kept_steps(collected: StageResult, tables: Mapping[str, Any]) -> Any:
    """Steps of the answers that curation kept."""
    import pyarrow as pa

    keys = ["query_id", "model_id", "sample"]

    def named(table: Any) -> list[tuple[Any, ...]]:
        return list(zip(*(table.column(name).to_pylist() for name in keys), strict=True))

    steps = read(collected, "steps")
    kept = set(named(tables["responses"]))
    return steps.filter(pa.array([key in kept for key in named(steps)], pa.bool_()))
