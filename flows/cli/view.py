"""`routeyard view`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RELEASE|WORKSPACE|SITE]...",
            help="Release directories, workspaces, or the folder of a site; default ./yard.",
        ),
    ] = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(help="Folder with evaluations, zoo tables or studies; again for more."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")] = True,
) -> None:
    """Look at releases in a browser: the site, served to this machine only.

    Examples:

        routeyard view yard

        routeyard view site --port 8000 --no-open
    """
    import tempfile
    import webbrowser

    from flows.site import write
    from flows.web.site_server import SiteServer

    given = places or [Path("yard")]
    with tempfile.TemporaryDirectory(prefix="routeyard-site-") as made:
        if len(given) == 1 and (given[0] / "site.css").is_file():
            folder = given[0]
        else:
            folder = Path(made)
            write(given, folder, results=results or ())
        server = SiteServer(folder, port=port)
        print(f"{server.address} (Ctrl-C ends)", flush=True)
        if open_:
            webbrowser.open(server.address)
        try:
            server.serve()
        except KeyboardInterrupt:
            print("ended")
