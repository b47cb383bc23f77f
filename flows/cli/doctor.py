"""`routeyard doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    workspace: Annotated[Path, typer.Option(help="The workspace to look at.")] = Path("yard"),
    as_json: Json = False,
) -> None:
    """Say what works on this machine, and what to do about what does not.

    Environment and versions, keys by name (never their values), Prefect, the ledger, the disk
    and the sandbox for code. Asks no model and changes nothing. Exits 1 when something that
    every build needs does not work.

    Example:

        routeyard doctor --workspace yard
    """
    from flows.cli.results import print_result
    from flows.doctor import examine

    rows = examine(workspace)
    if not print_result(rows, as_json):
        for row in rows:
            print(f"{row['state']:<7} {row['what']:<12} {row['says']}")
            if row["next"]:
                print(f"{'':<21}next: {row['next']}")
    if any(row["state"] == "broken" for row in rows):
        raise typer.Exit(1)
