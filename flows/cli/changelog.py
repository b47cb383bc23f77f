"""`routeyard changelog`: all versions of a benchmark and what changed between them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    benchmark: Annotated[Path, typer.Argument(help="Folder releases/<name>.")],
    out: Annotated[
        Path | None, typer.Option(callback=sealed_off, help="Write it to this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the changelog of a benchmark as Markdown, made from the data of its versions.

    routeyard changelog yard/releases/demo --out CHANGELOG.md
    """
    from flows.cli.results import print_result
    from pipelines.release.changelog import changelog

    text = changelog(benchmark)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    shown = text.rstrip("\n") if out is None else str(out)
    print_result({"benchmark": benchmark, "markdown": text, "path": out}, as_json, shown)
