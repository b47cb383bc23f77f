"""`routeyard query`: SQL over a release."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

import typer

from routeyard.flows.cli.options import Json, OptionalWrittenPath
from routeyard.flows.cli.results import Output


def command(
    release: Path,
    sql: Annotated[str, typer.Argument()] = "",
    format: Literal["table", "csv", "json", "markdown"] = "table",
    out: OptionalWrittenPath = None,
    timeout: float = 60.0,
    memory: str = "4GB",
    as_json: Json = False,
) -> Output:
    """Query a release in SQL: read-only, and nothing outside the release can be read.

        routeyard query yard/releases/demo/1.0.0 "FROM accuracy WHERE n_labelled > 0"

        routeyard query yard/releases/demo/1.0.0 @accuracy --format markdown

    Without SQL the saved queries are listed. `DESCRIBE labels` shows the columns of a table.

    Args:
        sql: One SQL statement, or @name of a saved query.
        format: How the answer is printed.
        out: Write the answer to this .csv, .json, .md or .parquet file instead.
        memory: Most memory of the query, such as 500MB.
    """
    from routeyard.flows.evaluation.released import say_if_yanked
    from routeyard.pipelines.release.manifest import read_manifest
    from routeyard.pipelines.release.query.answers import ending, to_text, write_answer
    from routeyard.pipelines.release.query.process import SqlProcess, query_release
    from routeyard.pipelines.release.query.saved import SAVED, saved

    if not sql:
        read_manifest(release)
        lines = (f"  @{name:<{max(map(len, SAVED))}}  {one.asks}" for name, one in SAVED.items())
        return Output(
            {name: query.asks for name, query in SAVED.items()},
            ["Saved queries (routeyard query RELEASE @name):", *lines],
        )
    say_if_yanked(release)
    text = saved(sql[1:]).sql if sql.startswith("@") else sql
    if out is not None:
        ending(out)  # before the query has worked for it
        with closing(SqlProcess(release, memory_limit=memory)) as process:
            rows = write_answer(*process.stream(text, timeout_s=timeout), out)
        return Output({"rows": rows, "path": out}, f"{rows:,} rows → {out}")
    answer = query_release(release, text, timeout_s=timeout, memory_limit=memory)
    if as_json:  # SQL has more types than `plain` knows
        return Output(json.loads(to_text(answer, "json")))
    return Output(None, to_text(answer, format).removesuffix("\n"))
