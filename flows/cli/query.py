"""`routeyard query`: SQL over a release."""

from __future__ import annotations

from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


class Format(StrEnum):
    """How the answer is printed."""

    table = "table"
    csv = "csv"
    json = "json"
    markdown = "markdown"


def command(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    sql: Annotated[str, typer.Argument(help="One SQL statement, or @name of a saved query.")] = "",
    format: Annotated[Format, typer.Option(help="How the answer is printed.")] = Format.table,
    out: Annotated[
        Path | None,
        typer.Option(callback=sealed_off, help="Write .csv, .json, .md or .parquet instead."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Longest time, in seconds.")] = 60.0,
    memory: Annotated[str, typer.Option(help="Most memory.")] = "4GB",
    as_json: Json = False,
) -> None:
    """Ask a release in SQL: read-only, and nothing outside the release can be read.

        routeyard query yard/releases/demo/1.0.0 "FROM accuracy WHERE n_labelled > 0"

        routeyard query yard/releases/demo/1.0.0 @accuracy --format markdown

    Without SQL the saved queries are listed. `DESCRIBE labels` shows the columns of a table.
    """
    from flows.cli.results import print_result
    from flows.evaluation.released import say_if_yanked
    from pipelines.release.query.answers import ending, to_text, write_answer
    from pipelines.release.query.process import SqlProcess, query_release
    from pipelines.release.query.saved import SAVED, saved

    if not sql:
        if print_result({name: query.asks for name, query in SAVED.items()}, as_json):
            return
        width = max(map(len, SAVED))
        print("Saved queries (routeyard query RELEASE @name):")
        for name, query in SAVED.items():
            print(f"  @{name:<{width}}  {query.asks}")
        return
    say_if_yanked(release)
    text = saved(sql[1:]).sql if sql.startswith("@") else sql
    if out is not None:
        ending(out)  # before the query has worked for it
        with closing(SqlProcess(release, memory_limit=memory)) as process:
            rows = write_answer(*process.stream(text, timeout_s=timeout), out)
        print_result({"rows": rows, "path": out}, as_json, f"{rows:,} rows → {out}")
        return
    answer = query_release(release, text, timeout_s=timeout, memory_limit=memory)
    print(to_text(answer, "json" if as_json else format.value), end="")
