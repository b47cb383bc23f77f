"""`routeyard status`."""

from __future__ import annotations

from routeyard.flows.cli.options import YARD, Workspace
from routeyard.flows.cli.results import Output


def command(recipe: str, workspace: Workspace = YARD) -> Output:
    """List which stages are fresh or stale, and why. Makes nothing, calls no model.

    Example:

        routeyard status demo --workspace yard
    """
    from routeyard.flows.status import status

    rows = status(recipe, str(workspace))
    shown = (f"{row['stage']:<9} {row['state']:<8} {row['why']}".rstrip() for row in rows)
    return Output(rows, shown)
