"""`routeyard changelog`: all versions of a benchmark and what changed between them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import written
from flows.cli.results import Output


def command(
    benchmark: Annotated[Path, typer.Argument(help="Folder releases/<name>.")],
    out: Annotated[Path | None, written("Write it to this file.")] = None,
) -> Output:
    """Print the changelog of a benchmark as Markdown, made from the data of its versions.

    routeyard changelog yard/releases/demo --out CHANGELOG.md
    """
    from pipelines.release.changelog import changelog

    text = changelog(benchmark)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    shown = text.rstrip("\n") if out is None else str(out)
    return Output({"benchmark": benchmark, "markdown": text, "path": out}, shown)
