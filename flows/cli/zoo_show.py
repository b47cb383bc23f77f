"""`routeyard zoo show`: all that a router says about itself."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    name: Annotated[str, typer.Argument(help="Router, as `routeyard zoo list` names it.")],
    as_json: Json = False,
) -> None:
    """Say what a router is: paper, task, loss, selection rule, what differs and what is tried.

    Examples:

        routeyard zoo show routerdc
    """
    import inspect

    from flows.cli.results import print_result
    from flows.cli.zoo_list import about
    from pipelines.routers import ROUTERS

    made = ROUTERS.get(name)
    row = about(name)
    said = {**row, "module": made.__module__, "says": inspect.getdoc(made)}
    if print_result(said, as_json):
        return
    print(f"{name}: {made.__module__}\n")
    print(inspect.getdoc(made) or "")
    print()
    for key in ("paper", "loss", "selection", "scale", "stochastic", "online", "cost", "extra"):
        if row[key] not in ("", None):
            print(f"{key:<14} {row[key]}")
    print(f"{'needs':<14} {', '.join(row['needs']) or 'nothing'}")
    print(f"{'architectures':<14} {len(row['architectures'])}")
    for one in row["architectures"]:
        print(f"  {one or 'defaults'}")
