"""`routeyard doctor`."""

from __future__ import annotations

from routeyard.flows.cli.options import YARD, Workspace
from routeyard.flows.cli.results import Output


def command(workspace: Workspace = YARD) -> Output:
    """List what works on this machine, and how to repair what does not.

    Environment and versions, keys by name (never their values), Prefect, the ledger, the disk
    and the sandbox for code. Asks no model and changes nothing. Exits 1 when something that
    every build needs does not work.

    Example:

        routeyard doctor --workspace yard
    """
    from routeyard.flows.doctor import examine

    rows = examine(workspace)
    lines = []
    for row in rows:
        lines.append(f"{row['state']:<7} {row['what']:<12} {row['says']}")
        if row["next"]:
            lines.append(f"{'':<21}next: {row['next']}")
    return Output(rows, lines, exit_code=int(any(row["state"] == "broken" for row in rows)))
