"""The ingest stage: every source of a recipe into one `queries` table."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.ingest import hub
from routeyard.pipelines.ingest.catalog import from_catalog
from routeyard.pipelines.ingest.images import SourceImages
from routeyard.pipelines.ingest.queries import Ingested, to_queries
from routeyard.pipelines.ingest.row import each_item
from routeyard.pipelines.io import files, named_files
from routeyard.schemas import QUERIES
from routeyard.schemas.recipe import Source


def ingest(sources: Sequence[Source], *, base: Path, images: Path | None = None) -> Ingested:
    """Read all sources in recipe order.

    Args:
        base: Folder that relative paths in the recipe start from.
        images: Folder that gets the images of questions, each under its SHA-256.

    Raises:
        SourceError, RecipeError: with file, row and column.
    """
    seen: Counter[str] = Counter()
    query_rows: list[dict[str, Any]] = []
    removed: list[tuple[str, str, str]] = []
    provenance: list[dict[str, Any]] = []
    notes: list[str] = []
    for listed in sources:
        source = from_catalog(listed)
        where, found, origin = _open(source, base)
        rows = each_item(source, found, where=where)
        if source.shuffle_seed is not None:
            shuffled = list(rows)
            random.Random(source.shuffle_seed).shuffle(shuffled)
            rows = iter(shuffled)
        pictures = SourceImages(source, base, images)
        taken, left_out = to_queries(
            source, rows, seen=seen, where=where, notes=notes, images=pictures
        )
        query_rows += taken
        removed += left_out
        provenance.append(
            {
                "source": source.name,
                **origin,
                **source.model_dump(include={"license", "url", "redistribute_text"}),
                "queries": len(taken),
            }
        )
    table = QUERIES.from_rows(query_rows, where="ingest")
    return Ingested(table, removed, provenance, tuple(notes))


def pin(source: Source) -> Source:
    """The source with its hub revision resolved to a commit."""
    source = from_catalog(source)
    if source.kind != "hub":
        return source
    commit = hub.resolve(str(source.hub_id), source.revision, where=f"source {source.name!r}")
    return source.model_copy(update={"revision": commit})


def _open(source: Source, base: Path) -> tuple[str, Iterator[dict[str, Any]], dict[str, Any]]:
    if source.kind == "hub":
        source = pin(source)
        commit = str(source.revision)
        rows = hub.rows(
            str(source.hub_id),
            config=source.config,
            split=source.split,
            revision=commit,
            streaming=source.streaming,
            where=f"source {source.name!r}",
        )
        origin = source.model_dump(include={"hub_id", "config", "split", "revision"})
        return f"{source.hub_id}@{commit[:12]}", rows, origin
    found = named_files.expand(str(source.path), base=base, where=f"source {source.name!r}")
    origin = {"files": [{"name": path.name, "sha256": files.sha256(path)} for path in found]}
    several = len(found) > 1
    rows = _placed(found, source.format) if several else files.rows(found[0], source.format)
    return ", ".join(path.name for path in found), rows, origin


def _placed(paths: list[Path], declared: str | None = None) -> Iterator[dict[str, Any]]:
    """Rows of several files, each with its file and its place in it."""
    for path in paths:
        for number, row in enumerate(files.rows(path, declared), 1):
            line = getattr(row, "line", None)
            placed = row if isinstance(row, files.Line) else files.Line(row)
            placed.place = f"{path.name}, " + (f"row {number}" if line is None else f"line {line}")
            yield placed
