"""`routeyard demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.show.options import Json


def command(
    workspace: Annotated[
        Path, typer.Option(help="Folder of ledger, stage outputs and releases.")
    ] = Path("yard"),
    as_json: Json = False,
) -> None:
    """Build a small benchmark end to end, offline and without a key.

    A few hundred questions that ship with Routeyard are asked, through the real
    client, of a simulated pool behind an HTTP server on this machine; answers are
    labelled, near-duplicates found with real sentence embeddings, and a release is
    written. The pool is simulated: the figures say nothing about real models.

    Stop it at any time and run it again: it goes on where it was.

    Example:

        routeyard demo --workspace yard
    """
    from flows.commands.build import command as build

    build("demo", workspace=workspace, jobs=2, until="release", as_json=as_json)
