"""`routeyard export`: a release in the layout of another project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    format: Annotated[str, typer.Argument(help="routellm, embedllm, llmrouterbench, ulab.")],
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    directory: Annotated[Path, typer.Argument(callback=sealed_off, help="New folder to write.")],
    strong: Annotated[str | None, typer.Option(help="Strong model (routellm).")] = None,
    weak: Annotated[str | None, typer.Option(help="Weak model (routellm).")] = None,
    as_json: Json = False,
) -> None:
    """Write a release in the layout that another project trains its routers from.

        routeyard export embedllm yard/releases/demo/1.0.0 bundle

        routeyard export routellm yard/releases/demo/1.0.0 bundle --strong big --weak small

    Pairs without a label are left out; they are never written as wrong.
    """
    from flows.cli.results import print_result
    from pipelines.release.exporters import EXPORTERS
    from pipelines.release.exporters.bundle import export
    from pipelines.release.reader import open_release

    exporter = EXPORTERS.get(format)
    options = {"strong": strong, "weak": weak}
    given = {name: value for name, value in options.items() if value is not None}
    with open_release(release) as opened:
        done = export(exporter, opened, directory, given)
    print_result(
        {"path": directory, "labels": done.rows, "files": done.files, "dropped": done.dropped},
        as_json,
        f"{done.rows:,} labels in {len(done.files):,} files → {directory}",
        *(f"not held by the layout: {what}: {count:,}" for what, count in done.dropped.items()),
    )
