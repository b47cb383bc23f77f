"""`routeyard zoo list`: the routers, what each needs and what it costs."""

from __future__ import annotations

from routeyard.flows.cli.results import Output


def command() -> Output:
    """List the routers of the zoo.

    Examples:

        routeyard zoo list

        routeyard zoo list --json
    """
    from routeyard.pipelines.routers import ROUTERS
    from routeyard.pipelines.routers.described import described

    rows = [described(name) for name in ROUTERS.names()]
    table = [
        (row["name"], "needs " + (", ".join(row["needs"]) or "nothing"), row["cost"], row["paper"])
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return Output(rows, ("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table))
