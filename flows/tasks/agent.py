"""The collect stage of an agent: trajectories step by step, into `responses` and `steps`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from routeyard.flows.tasks.responses import (
    answers_fingerprint,
    check_answered,
    check_complete,
    write_by_model,
)
from routeyard.flows.tracking.log import log
from routeyard.flows.workspace.shares import at_server, open_ledger, provider_slots
from routeyard.flows.workspace.stage_folders import (
    BuildContext,
    PendingAnswers,
    StageResult,
    StageWork,
    write_table,
)
from routeyard.flows.workspace.tables import read
from routeyard.schemas.recipe import Collect, Pool


def walk_trajectories(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    models: StageResult,
) -> StageWork | PendingAnswers:
    """Every trajectory to its end; what arrived is in the ledger when a run stops before.

    Raises:
        BudgetReached, ProviderError: steps are missing.
    """
    from routeyard.pipelines.collect.agent.rounds import AgentRun, walk
    from routeyard.pipelines.collect.agent.search import corpus_of
    from routeyard.pipelines.collect.agent.tables import tables_of
    from routeyard.pipelines.io import files, named_files

    agent = collect.agent
    assert agent is not None
    table = read(queries, "queries")
    corpus = corpus_of(table, agent.search, base=context.base)

    def walked(pool: Pool, show: Any = None, *, send: bool) -> AgentRun:
        how = {"benchmark": context.benchmark, "send": send, "on_progress": show}
        with open_ledger(context.root) as ledger:
            return walk(table, pool, collect, ledger, corpus, **how)

    def work(done: AgentRun) -> StageWork:
        tables = tables_of(done.trajectories, pool)
        responses, steps = tables["responses"], tables["steps"]
        check_answered(context, collect, responses)

        def make(folder: Path) -> Mapping[str, Any]:
            write_by_model(responses, folder)
            write_table(steps, folder / "steps.parquet")
            return {
                "responses": responses.num_rows,
                "steps": steps.num_rows,
                "passages": len(corpus.passages),
            }

        inputs = {
            "queries": queries.fingerprint,
            "pool": models.fingerprint,
            "answers": answers_fingerprint(responses),
            "steps": answers_fingerprint(steps),
        }
        if (file := agent.search.file) is not None:
            found = named_files.expand(file, base=context.base, where="collect.agent.search.file")
            inputs["corpus"] = ",".join(files.sha256(one) for one in found)
        return StageWork(collect.model_dump(mode="json"), inputs, make)

    def ask() -> StageWork:
        from routeyard.flows.console.progress import collecting

        ours, tell = at_server(pool), partial(log, context.benchmark, "collect")
        made_up = [model.model_id for model in pool.models if model.simulated]
        with provider_slots(ours), collecting(also=tell, simulated=made_up) as show:
            done = walked(ours, show, send=True)
        what = "steps are still missing ({models}), and those that follow them"
        gate: dict[str, Any] = {"pool": pool, "collect": collect, "wanted": len(done.trajectories)}
        gate |= {"out_of_budget": done.out_of_budget, "refused": done.refused}
        check_complete(context, done.missing, done.stopped, what=what, **gate)
        return work(done)

    stored = walked(pool, send=False)
    return PendingAnswers(sum(stored.missing.values()), ask) if stored.missing else work(stored)


def kept_steps(steps: Any, responses: Any) -> Any:
    """Steps of the answers that curation kept, in their order."""
    import pyarrow as pa

    keys = ["query_id", "model_id", "sample"]
    kept = set(zip(*(responses.column(name).to_pylist() for name in keys), strict=True))
    named = zip(*(steps.column(name).to_pylist() for name in keys), strict=True)
    return steps.filter(pa.array([key in kept for key in named], pa.bool_()))
