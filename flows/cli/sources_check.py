"""`routeyard sources check`."""

from __future__ import annotations

from typing import Annotated

import typer

from routeyard.flows.cli.results import Output


def command(
    name: str,
    file: str | None = None,
    rows: Annotated[int, typer.Option(min=1, max=1000)] = 5,
) -> Output:
    """Read a few rows of a source and list columns that differ from the catalog's.

    Exits 0 when every row becomes a query, 3 when not.

    Examples:

        routeyard sources check gsm8k

        routeyard sources check gsm8k --file test.jsonl

    Args:
        name: A source of the catalog.
        file: CSV, JSONL or Parquet, or a glob, instead of the hub.
        rows: Rows to read.
    """
    from routeyard.pipelines.errors import SourceError
    from routeyard.pipelines.ingest.catalog import entry
    from routeyard.pipelines.ingest.check import check, sample

    found = entry(name)
    read = sample(found.source, file, rows=rows)
    if not read:
        raise SourceError("there are no rows", where=str(file or found.source.hub_id))
    done = check(found, read)
    lines = [f"{done.rows} rows read of {file or found.source.hub_id or found.source.path}"]
    for words, columns in (
        ("not in the data", done.missing),
        ("not in the catalog", done.new),
        ("unconfirmed in the catalog, and there", done.unconfirmed),
    ):
        if columns:
            lines.append(f"{words}: {', '.join(columns)}")
    if done.fits:
        first = done.queries[0]
        lines.append(
            f"the rows become {len(done.queries)} queries; the first:\n\n{first['prompt']}\n\n"
            f"references: {first['references']}"
        )
    else:
        lines.append(f"the rows do not become queries: {done.fault or 'no row was left'}")
    return Output(done, lines, exit_code=0 if done.fits else 3)
