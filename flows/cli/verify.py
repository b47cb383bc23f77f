"""`routeyard verify`: does a release hold?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.options import Json

if TYPE_CHECKING:
    from pipelines.release.checks.verify import Finding


def command(
    release: Annotated[str, typer.Argument(help="Release folder or URL.")],
    signer: Annotated[
        str | None,
        typer.Option(help="Require a signature by this Ed25519 public key (file or text)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a release against itself; exits 0 when it holds and 3 when it does not.

    Every file is compared with its SHA-256, every table with its contract and
    fingerprint, ids between tables are followed, every object of the database is
    compared with what a release defines, and each number of the card is computed
    again from the data. Nothing in the release is believed or run.

        routeyard verify yard/releases/demo/1.0.0

        routeyard verify yard/releases/demo/1.0.0 --signer publisher.pub

        routeyard verify s3://bucket/releases/demo/1.0.0
    """
    from datacards.card import render
    from flows.cli.results import print_result
    from pipelines.errors import GateFailed
    from pipelines.release.checks.leaks import leaks_of
    from pipelines.release.checks.verify import verify_release
    from pipelines.release.manifest import read_manifest
    from pipelines.release.storage import local_copy
    from pipelines.release.yank import yanked

    with local_copy(release) as folder:
        findings = verify_release(folder, render_card=render, signer=signer)
        if findings:
            print_result({"holds": False, "findings": findings}, as_json, *map(str, findings))
            raise GateFailed(
                f"{len(findings)} thing(s) in the release do not hold",
                where=release,
                next_step=_next(findings),
            )
        manifest = read_manifest(folder)
        rows = sum(entry.rows for entry in manifest.tables.values())
        leaks, note = leaks_of(folder, manifest), yanked(folder)
        said = {"holds": True, "findings": [], "name": manifest.name, "version": manifest.version}
        said |= {"tables": len(manifest.tables), "rows": rows, "leaks": leaks, "yanked": note}
        if print_result(said, as_json):
            return
        print(
            f"{manifest.name} {manifest.version} holds: {len(manifest.files) + 3} files, "
            f"{len(manifest.tables)} tables, {rows:,} rows"
        )
        for scheme in leaks:
            print(
                f"split scheme {scheme['scheme']!r}: of {scheme['test']:,} test questions "
                f"{scheme['verbatim']:,} stand word for word in train"
                + (
                    ""
                    if scheme["near_duplicates"] is None
                    else f" and {scheme['near_duplicates']:,} have a near-duplicate there"
                )
            )
        if note:
            print(f"yanked: {note.reason}")


def _next(findings: Sequence[Finding]) -> str:
    """What mends it; a signature is no matter of the content."""
    if any(one.check != "signature" for one in findings):
        return (
            "fetch it again from where it was published; "
            "if it was never moved, build it again under a new version"
        )
    if "nobody signed" in findings[0].says:
        return (
            "ask the publisher for manifest.json.sig, or leave --signer out: everything else "
            "holds; a release of yours is signed by `routeyard sign RELEASE --key KEY`"
        )
    return "ask the publisher for the key they sign with; everything else holds"
