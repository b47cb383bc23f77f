"""`routeyard rehearse`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that ships.")],
    workspace: Annotated[
        Path,
        typer.Option(callback=sealed_off, help="Folder of ledger, stage outputs and releases."),
    ] = Path("yard"),
    copies: Annotated[int, typer.Option(min=1, help="Variants asked of each fixture row.")] = 3,
    as_json: Json = False,
) -> None:
    """Build a recipe end to end from fixture rows and a pool on loopback, at no cost.

    Rows written for Routeyard in each dataset's own layout stand in for the datasets, one local
    server plays every model, verifier and judge, and EmbedLLM is planted. The release is called
    `<recipe>-rehearsal` and its card says what it is.

    Example:

        routeyard rehearse nine_by_30k --workspace yard
    """
    from flows.cli.results import print_result
    from flows.console.summary import console_summary
    from flows.rehearse import rehearse

    summary = rehearse(recipe, str(workspace), copies=copies)
    if print_result(summary, as_json):
        return
    console_summary(Path(summary["release"]["path"]), summary["release"]["status"])
