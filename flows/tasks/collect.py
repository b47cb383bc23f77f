"""The collect stage of models behind an API: ask what the ledger lacks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from routeyard.flows.tasks.responses import (
    answers_fingerprint,
    asked_about,
    check_answered,
    check_complete,
    write_by_model,
)
from routeyard.flows.tracking.log import log
from routeyard.flows.workspace.shares import (
    at_server,
    collector_slot,
    collectors,
    open_ledger,
    provider_slots,
    share,
)
from routeyard.flows.workspace.stage_folders import (
    BuildContext,
    PendingAnswers,
    StageResult,
    StageWork,
)
from routeyard.flows.workspace.tables import read
from routeyard.schemas.recipe import Collect, Pool


def ask_models(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    models: StageResult,
    rows: list[list[int]] | None = None,
) -> StageWork | PendingAnswers:
    """Answers of the pool to the questions, one response file per model.

    Args:
        rows: Rows of the questions that each model of the pool is asked; null for what
            the recipe's coverage says.
    """
    import numpy as np

    from routeyard.pipelines.calls.moved_ports import note_lists
    from routeyard.pipelines.calls.wire.address import identity_of
    from routeyard.pipelines.collect.collect import collect as ask_pool
    from routeyard.pipelines.collect.collect import responses_table
    from routeyard.pipelines.collect.plan import plan

    table = read(queries, "queries")
    # Part of every request's hash; without it `verify` could not make the hash again.
    named = {one.name: identity_of(one) for one in pool.providers if "$" in one.base_url}
    addresses = {"addresses": named} if named else {}
    drawn = None if rows is None else [np.array(one, dtype=np.int32) for one in rows]
    how: dict[str, Any] = {"rows": drawn, **asked_about(context, queries)}

    def work(responses: Any) -> StageWork:
        check_answered(context, collect, responses)

        def make(folder: Path) -> Mapping[str, Any]:
            write_by_model(responses, folder)
            return {"responses": responses.num_rows, **addresses}

        inputs = {
            "queries": queries.fingerprint,
            "pool": models.fingerprint,
            "answers": answers_fingerprint(responses),
        }
        return StageWork(collect.model_dump(mode="json"), inputs, make)

    def ask() -> StageWork:
        from routeyard.flows.console.progress import collecting

        ours, asking = share(at_server(pool), collect, count := collectors())
        tell = partial(log, context.benchmark, "collect")
        made_up = [model.model_id for model in pool.models if model.simulated]
        with open_ledger(context.root) as ledger:
            planned = plan(table, ours, asking, ledger, **how)
            note_lists(ledger, ours.providers, context.benchmark)
            with (
                collector_slot(count),
                provider_slots(ours),
                collecting(also=tell, simulated=made_up) as show,
            ):
                done = ask_pool(planned, ledger, on_progress=show)
            why = [*([done.stopped] if done.stopped else []), *done.paused.values()]
            gate: dict[str, Any] = {"pool": pool, "collect": collect, "wanted": planned.wanted}
            gate |= {"out_of_budget": done.out_of_budget, "refused": done.refused}
            check_complete(context, done.missing, why, **gate)
            return work(responses_table(planned, ledger))

    with open_ledger(context.root) as ledger:
        planned = plan(table, pool, collect, ledger, **how)
        if planned.missing:
            return PendingAnswers(planned.missing, ask)
        return work(responses_table(planned, ledger))
