"""`routeyard status`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that ships.")],
    workspace: Annotated[Path, typer.Option(help="The workspace to look at.")] = Path("yard"),
    as_json: Json = False,
) -> None:
    """Say which stages are fresh, which are stale, and why. Makes nothing, calls no model.

    Example:

        routeyard status demo --workspace yard
    """
    from flows.cli.results import print_result
    from flows.status import status

    rows = status(recipe, str(workspace))
    if print_result(rows, as_json):
        return
    for row in rows:
        print(f"{row['stage']:<9} {row['state']:<8} {row['why']}".rstrip())
