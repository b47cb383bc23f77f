"""`routeyard publish`: a release to a hub, an object store or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    to: Annotated[str, typer.Option(help="hub:org/name, a URL (s3://…), or a folder.")],
    dry_run: Annotated[bool, typer.Option(help="List what would go; send nothing.")] = False,
    private: Annotated[bool, typer.Option(help="Make a new hub dataset private.")] = False,
) -> None:
    """Check a release and send it; the same command continues after a cut connection.

        routeyard publish yard/releases/demo/1.0.0 --to hub:my-org/demo --dry-run

        routeyard publish yard/releases/demo/1.0.0 --to s3://bucket/releases

    A version that is there already is never replaced. The hub's token is read
    from HF_TOKEN.
    """
    from datacards.card import render
    from pipelines.errors import GateFailed
    from pipelines.release.manifest import read_manifest
    from pipelines.release.storage import is_url, names, put
    from pipelines.release.verify import verify_release

    if findings := verify_release(release, render_card=render):
        raise GateFailed(
            f"the release does not hold: {findings[0].where} {findings[0].says}",
            where=str(release),
            next_step=f"see all of it with `routeyard verify {release}`",
        )
    manifest = read_manifest(release)
    files = names(release, manifest)
    size = sum((release / name).stat().st_size for name in files)
    if to.startswith("hub:"):
        from datacards.publish import publish_hub

        done = publish_hub(
            release,
            to.removeprefix("hub:"),
            version=manifest.version,
            names=files,
            private=private,
            dry_run=dry_run,
        )
        sent, where = list(done.sent), f"{done.url} ({done.tag})"
    else:
        place = to if is_url(to) else str(Path(to).absolute())
        stored = put(release, place, dry_run=dry_run)
        sent, where = list(stored.sent), stored.url
    for name in sent:
        print(f"{(release / name).stat().st_size:>14,}  {name}")
    told = "would go" if dry_run else "went"
    print(f"{len(sent)} of {len(files)} files ({size:,} bytes in all) {told} to {where}")
