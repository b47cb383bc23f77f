"""`routeyard build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that ships.")],
    workspace: Annotated[
        Path, typer.Option(help="Folder of ledger, stage outputs and releases.")
    ] = Path("yard"),
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes for labelling.")] = 2,
    until: Annotated[
        str, typer.Option(help="Last stage: ingest, collect, label, curate, certify, release.")
    ] = "release",
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Build a benchmark release from a recipe.

    What is finished is reused, so a build that was stopped goes on where it was.
    A release that exists is never overwritten: set a new version in the recipe.

    Examples:

        routeyard build my_benchmark.yaml --workspace yard

        ROUTEYARD_DATA=~/recordings routeyard build zeroeval_gsm
    """
    from flows.build import STAGES, run_build
    from flows.summary import console_summary
    from pipelines.errors import BadInput, did_you_mean

    if until not in STAGES:
        raise BadInput(f"there is no stage {until!r}", next_step=did_you_mean(until, STAGES))
    summary = run_build(recipe, str(workspace), jobs=jobs, until=until)
    if as_json:
        import json

        print(json.dumps(summary, indent=1, sort_keys=True))
        return
    if "release" in summary:
        console_summary(Path(summary["release"]["path"]), summary["release"]["status"])
