"""`routeyard export`: a release in the layout of another project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import sealed_off
from routeyard.flows.cli.results import Output


def command(
    format: str,
    release: Path,
    directory: Annotated[Path, typer.Argument(callback=sealed_off)],
    strong: str | None = None,
    weak: str | None = None,
    scheme: str | None = None,
) -> Output:
    """Write a release in the layout that another project trains its routers from.

        routeyard export embedllm yard/releases/demo/1.0.0 bundle

        routeyard export routellm yard/releases/demo/1.0.0 bundle --strong big --weak small

        routeyard export participants yard/releases/demo/1.0.0 board/benchmark

    `participants` is for a leaderboard: everything but answers to the test questions. Pairs
    without a label are left out; they are never written as wrong.

    Args:
        format: embedllm, llmrouterbench, participants, routellm, routerarena, sprout, ulab.
        directory: New folder to write.
        strong: Strong model (routellm).
        weak: Weak model (routellm).
        scheme: Split scheme whose test questions are withheld (participants).
    """
    from routeyard.pipelines.release.exporters import EXPORTERS
    from routeyard.pipelines.release.exporters.bundle import export
    from routeyard.pipelines.release.reader import open_release

    options = {"strong": strong, "weak": weak, "scheme": scheme}
    given = {name: value for name, value in options.items() if value is not None}
    with open_release(release) as opened:
        done = export(EXPORTERS.get(format), opened, directory, given)
    return Output(
        {"path": directory, "labels": done.rows, "files": done.files, "dropped": done.dropped},
        [
            f"{done.rows:,} labels in {len(done.files):,} files → {directory}",
            *(f"not held by the layout: {what}: {n:,}" for what, n in done.dropped.items()),
        ],
    )
