"""`routeyard plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that ships.")],
    workspace: Annotated[Path, typer.Option(help="Workspace whose ledger counts.")] = Path("yard"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Say what a build would ask and what it would cost. Calls no model.

    What the ledger already has is not asked again and not counted. Token counts say how sure
    they are; a cost is unknown when a price is.

    Example:

        routeyard plan demo --workspace yard
    """
    from flows.plan import plan_build, show

    said = plan_build(recipe, str(workspace))
    if as_json:
        import json

        print(json.dumps(said, sort_keys=True))
    else:
        show(said)
