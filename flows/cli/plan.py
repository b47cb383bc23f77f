"""`routeyard plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.options import Json


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that ships.")],
    workspace: Annotated[Path, typer.Option(help="Workspace whose ledger counts.")] = Path("yard"),
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
    read: Annotated[
        bool, typer.Option("--read", help="Read hub sources even where the recipe states counts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what a build would ask and what it would cost. Calls no model.

    What the ledger already has is not asked again and not counted. Token counts say how sure
    they are; a cost is unknown when a price is. A recipe of hub datasets that states how many
    questions it takes of each is planned from that, without the network.

    Examples:

        routeyard plan demo --workspace yard

        routeyard plan nine_by_30k --scale 0.01
    """
    from flows.cli.results import print_result
    from flows.plan import plan_build
    from flows.plan import show as words

    changes: dict[str, Any] = {"reask": reask} if reask else {}
    if reask_truncated is not None:
        changes["reask_truncated"] = reask_truncated
    said = plan_build(recipe, str(workspace), changes, scale=scale, read_sources=read)
    if not print_result(said, as_json):
        words(said)
