"""Questions of other datasets, only to compare the benchmark's own with (contamination)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.catalog import from_catalog
from routeyard.pipelines.ingest.ingest import ingest
from routeyard.schemas.recipe import Fields, Source


def compared(sources: Sequence[Source], *, base: Path) -> pa.Table:
    """`dataset`, `text`: every question of the sources; references are not read.

    Raises:
        SourceError, RecipeError: as for sources that a benchmark takes its questions from.
    """
    asked = ingest([_only_questions(source) for source in sources], base=base).queries
    return pa.table({"dataset": asked.column("source"), "text": asked.column("question")})


def _only_questions(listed: Source) -> Source:
    source = from_catalog(listed)
    if source.fields is None:
        raise SourceError(
            f"dataset {source.name!r} names no fields",
            next_step="add 'fields: {question: COLUMN}', or take it from the catalog",
        )
    fields = Fields(question=source.fields.question)
    return source.model_copy(update={"fields": fields, "scorer": "none", "catalog": None})
