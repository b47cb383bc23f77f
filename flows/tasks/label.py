"""The label stage: rule verdicts model by model, then verifiers and judges, then the court."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import task

from flows import console
from flows.tasks.recorded import response_files
from flows.tasks.verdicts import labels_task, verdicts_task
from flows.tracking.retries import AFTER_CALLS
from flows.tracking.run import call, each
from flows.workspace.shares import open_ledger
from flows.workspace.stage_folders import PROBING, StageResult, Stale, run_stage, write_table
from flows.workspace.tables import read, read_shards
from schemas.recipe import Recipe

#: Below this many responses, starting worker processes costs more than labelling.
_SMALL = 20_000


def label_stage(
    recipe: Recipe, root: Path, queries: StageResult, collected: StageResult, *, jobs: int
) -> StageResult:
    """Labels of a benchmark; what is filed already is not filed again."""
    files = response_files(collected)
    common = {"recipe": recipe, "root": str(root), "queries": queries}
    shards = [
        {**common, "responses": str(path), "shard": (number, len(files))}
        for number, path in enumerate(files, 1)
    ]
    processes = 1 if int(collected.figures["responses"]) < _SMALL else jobs
    with console.counter("label", "models") as count:
        filed = each(verdicts_task, shards, processes=processes, on_done=count)
    if (decided := reviewed(recipe, root)) is not None:
        filed = [*filed, decided]
    if recipe.label.verifiers or recipe.label.judges:
        heard = call(
            hear_task,
            recipe=recipe,
            root=str(root),
            queries=queries,
            collected=collected,
            verdicts=filed,
        )
        _say_heard(heard)
        filed = [heard]
    return call(  # type: ignore[no-any-return]
        labels_task,
        recipe=recipe,
        root=str(root),
        queries=queries,
        collected=collected,
        verdicts=filed,
    )


def reviewed(recipe: Recipe, root: Path) -> StageResult | None:
    """What people decided (`routeyard review`), as one more file of verdicts."""
    from flows.workspace.reviews import review_files, reviews
    from flows.workspace.tables import content

    files = review_files(root, recipe.name)
    if not files:
        return None

    def make(folder: Path) -> Mapping[str, Any]:
        decisions = reviews(root, recipe.name)
        write_table(decisions, folder / "verdicts.parquet")
        return {"decisions": decisions.num_rows}

    return run_stage(
        root,
        "reviews",
        parameters={"benchmark": recipe.name},
        inputs={"reviews": content(files)},
        make=make,
        benchmark=recipe.name,
    )


@task(
    name="hear verifiers and judges",
    persist_result=True,
    timeout_seconds=24 * 3600.0,
    **AFTER_CALLS,
)
def hear_task(
    recipe: Recipe,
    root: str,
    queries: StageResult,
    collected: StageResult,
    verdicts: Sequence[StageResult],
) -> StageResult:
    """Ask verifiers and judges for the verdicts the policies still want, through the ledger."""
    from pipelines.label.escalate import ask_verifiers_and_judges

    table = read(queries, "queries")
    responses = read_shards(response_files(collected), "responses")
    filed = read_shards([done.path("verdicts") for done in verdicts], "verdicts")
    with open_ledger(Path(root)) as ledger:
        heard = ask_verifiers_and_judges(
            table,
            responses,
            filed,
            policy=recipe.label,
            ledger=ledger,
            run=uuid.uuid4().hex,
            benchmark=recipe.name,
            send=not PROBING.get(),
        )
    unheard = sum(one["missing"] for one in heard.figures.values())
    if PROBING.get() and unheard:
        raise Stale("label", {"missing": unheard})

    def make(folder: Path) -> Mapping[str, Any]:
        write_table(heard.verdicts, folder / "verdicts.parquet")
        return {"heard": dict(heard.figures)}

    from pipelines.release.fingerprint import content

    return run_stage(
        Path(root),
        "hear",
        parameters=recipe.label.model_dump(mode="json"),
        inputs={"queries": queries.fingerprint, "verdicts": content(heard.verdicts)},
        make=make,
        benchmark=recipe.name,
    )


def _say_heard(heard: StageResult) -> None:
    for name, said in sorted(heard.figures["heard"].items()):
        stopped = f", stopped: {said['stopped']}" if said.get("stopped") else ""
        failed = f"{said['failed']:,} without an answer"
        console.line("hear", f"{name}: {said['asked']:,} asked, {failed}{stopped}")
