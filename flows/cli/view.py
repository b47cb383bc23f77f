"""`routeyard view`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import YARD


def command(
    places: Annotated[
        list[Path] | None, typer.Argument(metavar="[RELEASE|WORKSPACE|SITE]...")
    ] = None,
    results: list[Path] | None = None,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    open_: Annotated[bool, typer.Option("--open/--no-open")] = True,
) -> None:
    """Look at releases in a browser: the site, served to this machine only.

    Examples:

        routeyard view yard

        routeyard view site --port 8000 --no-open

    Args:
        places: Release folders, workspaces, or the folder of a site; default ./yard.
        port: Port; 0 takes a free one.
        open_: Open a browser.
    """
    import tempfile
    import webbrowser

    from routeyard.flows.site import write
    from routeyard.flows.web.site_server import SiteServer

    given = places or [YARD]
    with tempfile.TemporaryDirectory(prefix="routeyard-site-") as made:
        folder = given[0]
        if len(given) > 1 or not (folder / "site.css").is_file():
            folder = Path(made)
            write(given, folder, results=results or ())
        server = SiteServer(folder, port=port)
        print(f"{server.address} (Ctrl-C ends)", flush=True)
        if open_:
            webbrowser.open(server.address)
        server.serve()
        print("ended")
