"""The ingest and pool stages: sources → queries, pool → models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.flows.workspace import BuildContext, StageWork, content, write_table
from routeyard.schemas.images import IMAGES
from routeyard.schemas.recipe import Pool, Source


def read_sources(
    context: BuildContext, *, sources: Sequence[Source], compared_with: Sequence[Source]
) -> StageWork:
    """Sources → queries, what was left out of them, and the texts they are compared with."""
    from routeyard.pipelines.common import files as named_files
    from routeyard.pipelines.curate.rule import removals
    from routeyard.pipelines.ingest import compared, ingest, pin
    from routeyard.pipelines.ingest.images import image_files

    sources = [pin(source) for source in sources]
    others = [pin(source) for source in compared_with]
    inputs: dict[str, str] = {}
    for source in (*sources, *others):
        if source.on_hub:
            inputs[source.name] = str(source.revision)
        else:
            where = f"source {source.name!r}"
            result = named_files.expand(str(source.path), base=context.base, where=where)
            inputs[source.name] = content(result)
    for source in sources:
        if shown := image_files(source, context.base):
            inputs[f"images of {source.name}"] = content(shown)

    def make(folder: Path) -> Mapping[str, Any]:
        done = ingest(sources, base=context.base, images=folder / IMAGES)
        write_table(done.queries, folder / "queries.parquet")
        left_out = removals("ingest", "query", done.removed)
        write_table(left_out, folder / "removals.parquet")
        if others:
            write_table(compared(others, base=context.base), folder / "external.parquet")
        return {
            "queries": done.queries.num_rows,
            "removed": left_out.num_rows,
            "sources": done.provenance,
            "notes": list(done.notes),
        }

    parameters = {
        "sources": [source.model_dump(mode="json") for source in sources],
        "compared_with": [source.model_dump(mode="json") for source in others],
        "scorers": _scorers(sources),
    }
    return StageWork(parameters, inputs, make)


def _scorers(sources: Sequence[Source]) -> dict[str, list[Any]]:
    """What ingest takes from each scorer: it tells models the form and checks references."""
    from routeyard.pipelines.label.scorers import SCORERS

    named = {str(source.scorer) for source in sources} & SCORERS.targets.keys()
    if any(source.fields is not None and source.fields.scorer for source in sources):
        named = set(SCORERS.names())  # rows name their scorer: it may be any
    scorers = {name: SCORERS.get(name) for name in sorted(named)}
    return {name: [s.instruction, s.needs_reference, s.lettered] for name, s in scorers.items()}


def list_models(context: BuildContext, *, pool: Pool) -> StageWork:
    """Pool → models."""
    from routeyard.pipelines.common.pool import models_table

    def make(folder: Path) -> Mapping[str, Any]:
        models = models_table(pool)
        write_table(models, folder / "models.parquet")
        return {"models": models.num_rows}

    return StageWork(pool.model_dump(mode="json"), {}, make)
