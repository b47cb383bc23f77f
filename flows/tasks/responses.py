"""What the three ways of collecting have in common: one file per model, and when a build stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from routeyard.flows.tracking.log import log
from routeyard.flows.workspace.stage_folders import BuildContext, StageResult, write_table
from routeyard.flows.workspace.tables import slug
from routeyard.pipelines.errors import BudgetReached, GateFailed, ProviderError
from routeyard.schemas.images import IMAGES
from routeyard.schemas.recipe import Collect


def asked_about(context: BuildContext, queries: StageResult) -> dict[str, Any]:
    """Arguments of a plan beside questions, pool and settings: the benchmark, and its images."""
    return {"benchmark": context.benchmark, "images": Path(queries.folder) / IMAGES}


def write_by_model(responses: Any, folder: Path) -> None:
    """`responses/<model>.parquet`, so that later stages work model by model."""
    for model_id in sorted(pc.unique(responses.column("model_id")).to_pylist()):
        part = responses.filter(pc.equal(responses.column("model_id"), model_id))
        write_table(part, folder / "responses" / f"{slug(model_id)}.parquet")


def answers_fingerprint(responses: Any) -> str:
    """What was answered, whenever it was: measured times do not enter."""
    from routeyard.pipelines.release.fingerprint import content
    from routeyard.schemas.manifest import MEASURED_COLUMNS

    return content(responses, without=MEASURED_COLUMNS)


def check_complete(
    context: BuildContext,
    missing: Mapping[str, int],
    why: Iterable[str],
    *,
    what: str = "answers are still missing ({models})",
    out_of_budget: bool,
) -> None:
    """Stop when answers are missing: a label matrix has no holes that nobody asked for.

    Args:
        missing: Model → answers that asking again may bring.
        why: Why nothing more was asked.

    Raises:
        BudgetReached, ProviderError: name the models and how to go on.
    """
    if not missing:
        return
    models = ", ".join(f"{model} {n:,}" for model, n in sorted(missing.items()))
    raise (BudgetReached if out_of_budget else ProviderError)(
        f"{sum(missing.values()):,} {what.format(models=models)}: "
        f"{'; '.join(dict.fromkeys(why)) or 'calls failed'}",
        where=f"benchmark {context.benchmark}; what arrived is in the ledger",
        next_step="remove the cause and run the same command again "
        f"(--workspace {context.root}): only what is missing is asked",
    )


def check_answered(context: BuildContext, collect: Collect, responses: Any) -> None:
    """Report pairs that were given up, and stop where the recipe releases none of them.

    Raises:
        GateFailed: there are such pairs, and `collect.unanswered.release` is `stop`.
    """
    gone = responses.filter(pc.equal(responses.column("status"), "unanswered"))
    if not gone.num_rows:
        return
    counts = Counter(gone.column("model_id").to_pylist())
    models = ", ".join(f"{model} {count:,}" for model, count in sorted(counts.items()))
    policy = collect.unanswered
    gave_up = (
        f"{gone.num_rows:,} pairs were billed {policy.after} times and never answered ({models})"
    )
    if policy.release == "go_on":
        log(
            context.benchmark,
            "collect",
            f"{gave_up}: unanswered, counted neither as right nor as wrong",
        )
        return
    raise GateFailed(
        gave_up,
        where=f"benchmark {context.benchmark}, collect.unanswered.release: stop",
        next_step="raise 'collect.unanswered.after' to ask them again, write 'release: go_on' to "
        f"release without them, or take the queries out (--workspace {context.root})",
    )
