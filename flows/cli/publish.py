"""`routeyard publish`: a release to a hub, an object store or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    to: Annotated[str, typer.Option(help="hub:org/name, a URL (s3://…), or a folder.")],
    dry_run: Annotated[bool, typer.Option(help="List what would go; send nothing.")] = False,
    private: Annotated[bool, typer.Option(help="Make a new hub dataset private.")] = False,
    as_json: Json = False,
) -> None:
    """Check a release and send it; the same command continues after a cut connection.

        routeyard publish yard/releases/demo/1.0.0 --to hub:my-org/demo --dry-run

        routeyard publish yard/releases/demo/1.0.0 --to s3://bucket/releases

    A version that is there already is never replaced. The hub's token is read
    from HF_TOKEN.
    """
    from flows.cli.results import print_result
    from flows.publish import publish

    done = publish(release, to, private=private, dry_run=dry_run)
    sizes = {name: (release / name).stat().st_size for name in done.files}
    said = {"files": sizes, "of": done.of, "bytes": done.bytes, "where": done.where}
    if print_result(said | {"sent": not dry_run}, as_json):
        return
    for name, size in sizes.items():
        print(f"{size:>14,}  {name}")
    told = "would go" if dry_run else "went"
    print(
        f"{len(done.files)} of {done.of} files ({done.bytes:,} bytes in all) {told} to {done.where}"
    )
