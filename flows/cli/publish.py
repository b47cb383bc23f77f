"""`routeyard publish`: a release to a hub, an object store or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.results import Output


def command(
    release: Path,
    to: Annotated[str, typer.Option()],
    dry_run: bool = False,
    private: bool = False,
) -> Output:
    """Check a release and send it; the same command continues after a cut connection.

        routeyard publish yard/releases/demo/1.0.0 --to hub:my-org/demo --dry-run

        routeyard publish yard/releases/demo/1.0.0 --to s3://bucket/releases

    A version that is there already is never replaced. The hub's token is read
    from HF_TOKEN.

    Args:
        to: hub:org/name, a URL (s3://…), or a folder.
        dry_run: List what would go; send nothing.
        private: Make a new hub dataset private.
    """
    from routeyard.flows.publish import publish

    done = publish(release, to, private=private, dry_run=dry_run)
    sizes = {name: (release / name).stat().st_size for name in done.files}
    data = {"files": sizes, "of": done.of, "bytes": done.bytes, "where": done.where}
    verb = "would go" if dry_run else "went"
    return Output(
        data | {"sent": not dry_run},
        [
            *(f"{size:>14,}  {name}" for name, size in sizes.items()),
            f"{len(sizes)} of {done.of} files ({done.bytes:,} bytes in all) {verb} to {done.where}",
        ],
    )
