"""A source against data as they are: which columns differ, and whether rows become queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import RouteyardError
from routeyard.pipelines.ingest import hub
from routeyard.pipelines.ingest.catalog import Entry
from routeyard.pipelines.ingest.queries import to_queries
from routeyard.pipelines.ingest.row import each_item
from routeyard.pipelines.io import files, named_files
from routeyard.pipelines.scorers import SCORERS
from routeyard.pipelines.scorers.scorer import NO_RULE, Scorer, ScoringInput
from routeyard.schemas.recipe import Source


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in a few rows.

    Attributes:
        rows: Rows read.
        missing: Columns of the catalog's layout that no row has.
        new: Columns of the rows that the layout does not know.
        unconfirmed: Unconfirmed columns that the rows have: they are confirmed now.
        queries: What the rows became.
        fault: Why they became no queries; None when they did.
    """

    rows: int
    missing: tuple[str, ...]
    new: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    queries: tuple[Mapping[str, Any], ...]
    fault: str | None

    @property
    def fits(self) -> bool:
        """Every row became a query."""
        return self.fault is None and bool(self.queries)


def check(entry: Entry, rows: Sequence[Mapping[str, Any]]) -> Checked:
    """Compare a few rows with what the catalog says of the dataset.

    A column that the mapping does not read may come and go: it is named, and is no fault.
    """
    there = dict.fromkeys(key for row in rows for key in row if not key.startswith("_"))
    queries, fault = _queries(entry.source, rows)
    return Checked(
        rows=len(rows),
        missing=tuple(name for name in entry.columns if name not in there),
        new=tuple(name for name in there if name not in entry.columns),
        unconfirmed=tuple(name for name in entry.unconfirmed if name in there),
        queries=tuple(queries),
        fault=fault,
    )


def sample(source: Source, file: str | None, *, rows: int) -> list[Mapping[str, Any]]:
    """The first rows of a file or of those that a glob names, or of the hub dataset, streamed.

    Raises:
        SourceError: the file or the hub cannot be read.
    """
    return list(islice(_rows(source, file), rows))


def _rows(source: Source, file: str | None) -> Iterator[Mapping[str, Any]]:
    where = f"source {source.name!r}"
    if file is not None or source.kind == "files":
        named, place = (file, "--file") if file is not None else (str(source.path), where)
        for path in named_files.expand(named, base=Path.cwd(), where=place):
            yield from files.rows(path, None if file is not None else source.format)
        return
    hub_id = str(source.hub_id)
    # The first config and split are enough to see the columns.
    yield from hub.rows(
        hub_id,
        config=(source.config or "").split("|")[0] or None,
        split=source.split.split("|")[0].split("+")[0],
        revision=hub.resolve(hub_id, source.revision, where=where),
        streaming=True,
        where=where,
    )


def _queries(
    source: Source, rows: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], str | None]:
    placed = [{"_config": (source.config or "").split("|")[0], "_split": "", **row} for row in rows]
    # Conditions on values may match none of a few rows: that is no fault of the columns.
    free = source.model_copy(update={"where": {}, "exclude": {}, "limit": None})
    try:
        taken, _ = to_queries(
            free, each_item(free, placed, where="sample"), seen=Counter(), where="sample"
        )
        return taken, next((fault for fault in map(_unreadable, taken) if fault), None)
    except RouteyardError as error:
        return [], str(error)


def _unreadable(query: Mapping[str, Any]) -> str | None:
    """Why the query's scorer cannot use its reference; None when it can, or runs code."""
    if query["scorer"] in (NO_RULE, "code"):
        return None
    scorer: Scorer = SCORERS.get(query["scorer"])
    asked = ScoringInput(query["question"], tuple(query["references"]), tuple(query["choices"]))
    reading = scorer.read(asked, "Answer: 1")
    if reading.outcome != "error":
        return None
    return (
        f"the scorer {scorer.name!r} cannot use the reference {query['references']!r}: "
        f"{reading.reason}"
    )
