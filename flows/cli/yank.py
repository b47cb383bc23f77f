"""`routeyard yank`: mark a version as not to be used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.results import Output


def command(
    release: Path,
    reason: Annotated[str, typer.Option()],
    use_instead: str | None = None,
) -> Output:
    """Mark a release as yanked without deleting it: who pinned it can still read it.

    routeyard yank yard/releases/demo/1.0.0 --reason "prices were wrong" --use-instead 1.0.1

    Args:
        reason: Why it should not be used.
        use_instead: Version to use instead.
    """
    from routeyard.pipelines.release.manifest import read_manifest
    from routeyard.pipelines.release.yank import yank

    yank(release, reason=reason, use_instead=use_instead)
    manifest = read_manifest(release)
    data = {"name": manifest.name, "version": manifest.version, "reason": reason}
    return Output(
        data | {"use_instead": use_instead},
        f"{manifest.name} {manifest.version} is yanked; its files are as they were",
    )
