"""`routeyard site`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import WrittenPath


def command(
    places: Annotated[list[Path], typer.Argument(metavar="RELEASE|WORKSPACE...")],
    out: WrittenPath,
    results: list[Path] | None = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts")] = True,
) -> None:
    """Write a site to look at releases, routers and questions.

    The pages are static and request nothing from elsewhere: open index.html from disk, or
    put the folder on any static host. Results in a workspace are found without --results.

    Examples:

        routeyard site yard --out site

        routeyard site yard/releases/demo/1.0.0 --out site --results results

        routeyard site yard --out public --no-texts

    Args:
        places: Release folders or workspaces.
        out: Folder for the site, which begins at its `index.html`.
        texts: Show questions and answers; without, figures and charts alone.
    """
    from routeyard.flows.site import write

    print(write(places, out, results=results or (), texts=texts))
