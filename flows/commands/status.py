"""`routeyard status`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that ships.")],
    workspace: Annotated[Path, typer.Option(help="The workspace to look at.")] = Path("yard"),
    as_json: Annotated[bool, typer.Option("--json", help="Print rows as JSON.")] = False,
) -> None:
    """Say which stages are fresh, which are stale, and why. Makes nothing, calls no model.

    Example:

        routeyard status demo --workspace yard
    """
    from flows.status import status

    rows = status(recipe, str(workspace))
    if as_json:
        import json

        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f"{row['stage']:<9} {row['state']:<8} {row['why']}".rstrip())
