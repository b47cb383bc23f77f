"""`routeyard zoo list`: the routers, what each needs and what it costs."""

from __future__ import annotations

from typing import Any

from flows.cli.options import Json


def command(
    as_json: Json = False,
) -> None:
    """List the routers of the zoo.

    Examples:

        routeyard zoo list

        routeyard zoo list --json
    """
    from flows.cli.results import print_result

    rows = [about(name) for name in names()]
    if print_result(rows, as_json):
        return
    table = [
        (row["name"], "needs " + (", ".join(row["needs"]) or "nothing"), row["cost"], row["paper"])
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        print("  ".join(map(str.ljust, cells, widths)).rstrip())


def names() -> list[str]:
    from pipelines.routers import ROUTERS

    return ROUTERS.names()


def about(name: str) -> dict[str, Any]:
    """What a router says about itself, as JSON."""
    from dataclasses import asdict

    from pipelines.routers import ROUTERS
    from pipelines.routers.base import architectures_of, traits_of

    made = ROUTERS.get(name)
    traits = asdict(traits_of(made))
    return {
        "name": name,
        **{key: list(v) if isinstance(v, tuple) else v for key, v in traits.items()},
        "architectures": [dict(one) for one in architectures_of(made)],
    }
