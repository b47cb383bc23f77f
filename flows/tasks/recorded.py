"""Recorded answers → responses, one file per model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeyard.flows.tasks.responses import write_by_model
from routeyard.flows.workspace.stage_folders import BuildContext, StageResult, StageWork
from routeyard.flows.workspace.tables import content, read
from routeyard.schemas.recipe import Collect, Pool


def import_answers(
    context: BuildContext,
    *,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    models: StageResult,
) -> StageWork:
    """Recorded files → responses."""
    from routeyard.pipelines.collect.recorded import import_recorded
    from routeyard.pipelines.errors import RecordedError
    from routeyard.pipelines.io import named_files

    inputs = {"queries": queries.fingerprint, "pool": models.fingerprint}
    for number, entry in enumerate(collect.recorded):
        found = named_files.expand(entry.path, base=context.base, where="collect.recorded")
        inputs[f"recorded.{number}"] = content(found)

    def make(folder: Path) -> Mapping[str, Any]:
        questions, arms = read(queries, "queries"), read(models, "models")
        imported = import_recorded(questions, arms, collect.recorded, base=context.base)
        if not imported.responses.num_rows:
            raise RecordedError(
                "no recorded row that the recipe asks for has a text or a score: there is nothing "
                "to grade",
                where=", ".join(one["file"] for one in imported.provenance),
                next_step="record the answers or their outcomes; what the calls of an import cost "
                "needs none: routeyard replay FOLDER --pool prices.yaml",
            )
        write_by_model(imported.responses, folder)
        return {
            "responses": imported.responses.num_rows,
            "recorded": imported.provenance,
            "notes": imported.notes,
        }

    return StageWork(collect.model_dump(mode="json"), inputs, make)
