"""`routeyard build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.options import Json, sealed_off


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that ships.")],
    workspace: Annotated[
        Path,
        typer.Option(callback=sealed_off, help="Folder of ledger, stage outputs and releases."),
    ] = Path("yard"),
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    shards: Annotated[
        int, typer.Option(min=1, help="Parts each model's questions and embedding are cut into.")
    ] = 1,
    until: Annotated[
        str, typer.Option(help="Last stage: ingest, collect, label, curate, certify, release.")
    ] = "release",
    reask: Annotated[
        list[str] | None,
        typer.Option(help="Ask again what ended so for good: `error` or `refused` (repeatable)."),
    ] = None,
    reask_truncated: Annotated[
        int | None,
        typer.Option(min=1, help="Ask truncated answers again with this many tokens."),
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="Shrink every count of questions in proportion: 0.01.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Build a benchmark release from a recipe.

    What is finished is reused, so a build that was stopped goes on where it was.
    `--reask-truncated` and `--reask` are for one run; set `collect.reask_truncated` in the
    recipe to keep to it. After a key was mended, `--reask error` asks what it had refused.

    A release that exists is never overwritten: set a new version in the recipe.

    Examples:

        routeyard build my_benchmark.yaml --workspace yard

        ROUTEYARD_DATA=~/recordings routeyard build zeroeval_gsm
    """
    from flows.build import run_build
    from flows.cli.results import print_result
    from flows.console.summary import console_summary
    from flows.stages import UNTIL
    from pipelines.errors import BadInput, did_you_mean

    if until not in UNTIL:
        raise BadInput(f"there is no stage {until!r}", next_step=did_you_mean(until, UNTIL))
    changes: dict[str, Any] = {"reask": reask} if reask else {}
    if reask_truncated is not None:
        changes["reask_truncated"] = reask_truncated
    summary = run_build(
        recipe, str(workspace), jobs=jobs, until=until, collect=changes, shards=shards, scale=scale
    )
    if print_result(summary, as_json):
        return
    if "release" in summary:
        console_summary(Path(summary["release"]["path"]), summary["release"]["status"])
