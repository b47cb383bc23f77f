"""`routeyard yank`: mark a version as not to be used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    reason: Annotated[str, typer.Option(help="Why it should not be used.")],
    use_instead: Annotated[str | None, typer.Option(help="Version to use instead.")] = None,
    as_json: Json = False,
) -> None:
    """Mark a release as yanked without deleting it: who pinned it can still read it.

    routeyard yank yard/releases/demo/1.0.0 --reason "prices were wrong" --use-instead 1.0.1
    """
    from flows.cli.results import print_result
    from pipelines.release.manifest import read_manifest
    from pipelines.release.yank import yank

    yank(release, reason=reason, use_instead=use_instead)
    manifest = read_manifest(release)
    said = {"name": manifest.name, "version": manifest.version, "reason": reason}
    print_result(
        said | {"use_instead": use_instead},
        as_json,
        f"{manifest.name} {manifest.version} is yanked; its files are as they were",
    )
