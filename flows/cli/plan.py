"""`routeyard plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from routeyard.flows.cli.build import collect_changes
from routeyard.flows.cli.options import YARD, ReaskTruncated, Workspace
from routeyard.flows.cli.results import Output


def command(
    recipe: str,
    workspace: Workspace = YARD,
    reask: list[str] | None = None,
    reask_truncated: ReaskTruncated = None,
    scale: float | None = None,
    read: Annotated[bool, typer.Option("--read")] = False,
) -> Output:
    """Print what a build would ask and what it would cost. Calls no model.

    Answers in the ledger are not asked again and not counted. Token counts come with their
    error; a cost is unknown where a price is. A recipe of hub datasets that states how many
    questions it takes of each is planned from that, without the network.

    Examples:

        routeyard plan demo --workspace yard

        routeyard plan nine_by_30k --scale 0.01

    Args:
        read: Read hub sources even where the recipe states counts.
    """
    from routeyard.flows.console import line

    line("plan", f"reads the sources of {recipe}")
    from routeyard.flows.plan import plan_build, show

    changes = collect_changes(reask, reask_truncated)
    found = plan_build(recipe, str(workspace), changes, scale=scale, read_sources=read)
    return Output(found, lambda: show(found))
