"""`routeyard changelog`: all versions of a benchmark and what changed between them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    benchmark: Annotated[Path, typer.Argument(help="Folder releases/<name>.")],
    out: Annotated[Path | None, typer.Option(help="Write it to this file.")] = None,
) -> None:
    """Print the changelog of a benchmark as Markdown, made from the data of its versions.

    routeyard changelog yard/releases/demo --out CHANGELOG.md
    """
    from pipelines.release.changelog import changelog

    text = changelog(benchmark)
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")
        print(out)
