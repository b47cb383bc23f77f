"""Recorded answers → responses, one file per model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect import task

from flows.tracking.retries import AT_HOME
from flows.workspace.stage_folders import StageResult, run_stage, write_table
from flows.workspace.tables import content, read, slug
from schemas.recipe import Recipe

_OPTIONS: dict[str, Any] = {"persist_result": True, **AT_HOME}


@task(name="import recorded", **_OPTIONS)
def recorded_task(
    recipe: Recipe, base: str, root: str, queries: StageResult, pool: StageResult
) -> StageResult:
    """Recorded files → responses, one file per model."""
    from pipelines.collect.recorded import import_recorded
    from pipelines.io import named_files

    inputs = {"queries": queries.fingerprint, "pool": pool.fingerprint}
    for number, entry in enumerate(recipe.collect.recorded):
        found = named_files.expand(entry.path, base=Path(base), where="collect.recorded")
        inputs[f"recorded.{number}"] = content(found)

    def make(folder: Path) -> Mapping[str, Any]:
        imported = import_recorded(
            read(queries, "queries"),
            read(pool, "models"),
            recipe.collect.recorded,
            base=Path(base),
        )
        write_by_model(imported.responses, folder)
        return {
            "responses": imported.responses.num_rows,
            "recorded": imported.provenance,
            "notes": imported.notes,
        }

    return run_stage(
        Path(root),
        "collect",
        parameters=recipe.collect.model_dump(mode="json"),
        inputs=inputs,
        make=make,
        benchmark=recipe.name,
    )


def write_by_model(responses: Any, folder: Path) -> None:
    """`responses/<model>.parquet`, so that later stages work model by model."""
    import pyarrow.compute as pc

    for model_id in sorted(pc.unique(responses.column("model_id")).to_pylist()):
        part = responses.filter(pc.equal(responses.column("model_id"), model_id))
        write_table(part, folder / "responses" / f"{slug(model_id)}.parquet")


def response_files(collected: StageResult) -> list[Path]:
    """The response files of a collect stage, in name order."""
    return sorted((Path(collected.folder) / "responses").glob("*.parquet"))
