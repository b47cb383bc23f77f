"""The ingest and pool stages: sources → queries, pool → models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import task

from flows.tracking.retries import AT_HOME, ATTEMPTS
from flows.workspace.stage_folders import StageResult, run_stage, write_table
from flows.workspace.tables import content
from schemas.recipe import Recipe, Source

_OPTIONS: dict[str, Any] = {"persist_result": True, **AT_HOME}


@task(name="ingest", persist_result=True, timeout_seconds=6 * 3600.0, **ATTEMPTS)
def ingest_task(recipe: Recipe, base: str, root: str) -> StageResult:
    """Sources → queries."""
    from pipelines.curate.rule import removals
    from pipelines.ingest import compared, ingest, pin
    from pipelines.io import named_files

    sources = [pin(source) for source in recipe.sources]
    others = [pin(source) for source in recipe.compared_with]
    inputs: dict[str, str] = {}
    for source in (*sources, *others):
        if source.kind == "hub":
            inputs[source.name] = str(source.revision)
        else:
            found = named_files.expand(
                str(source.path), base=Path(base), where=f"source {source.name!r}"
            )
            inputs[source.name] = content(found)

    def make(folder: Path) -> Mapping[str, Any]:
        done = ingest(sources, base=Path(base))
        write_table(done.queries, folder / "queries.parquet")
        left_out = removals("ingest", "query", done.removed)
        write_table(left_out, folder / "removals.parquet")
        if others:
            write_table(compared(others, base=Path(base)), folder / "external.parquet")
        return {
            "queries": done.queries.num_rows,
            "removed": left_out.num_rows,
            "sources": done.provenance,
            "notes": list(done.notes),
        }

    return run_stage(
        Path(root),
        "ingest",
        parameters={
            "sources": [source.model_dump(mode="json") for source in sources],
            "compared_with": [source.model_dump(mode="json") for source in others],
            "scorers": _scorers(sources),
        },
        inputs=inputs,
        make=make,
        benchmark=recipe.name,
    )


def _scorers(sources: Sequence[Source]) -> dict[str, list[Any]]:
    """What ingest takes from each scorer: it tells models the form and checks references."""
    from pipelines.scorers import SCORERS

    found = {}
    named = {str(source.scorer) for source in sources} & SCORERS.targets.keys()
    if any(source.fields is not None and source.fields.scorer for source in sources):
        named = set(SCORERS.names())  # rows name their scorer: it may be any
    for name in sorted(named):
        scorer = SCORERS.get(name)
        found[name] = [scorer.instruction, scorer.needs_reference, scorer.lettered]
    return found


@task(name="pool", **_OPTIONS)
def pool_task(recipe: Recipe, root: str) -> StageResult:
    """Pool → models."""
    from pipelines.pool import models_table

    def make(folder: Path) -> Mapping[str, Any]:
        models = models_table(recipe.pool)
        write_table(models, folder / "models.parquet")
        return {"models": models.num_rows}

    return run_stage(
        Path(root),
        "pool",
        parameters=recipe.pool.model_dump(mode="json"),
        inputs={},
        make=make,
        benchmark=recipe.name,
    )
