"""`routeyard verify`: does a release hold?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from routeyard.flows.cli.results import Output


def command(
    release: str,
    signer: str | None = None,
    full: Annotated[bool, typer.Option("--full")] = False,
    images: Path | None = None,
) -> Output:
    """Check a release against itself; exits 0 when it holds and 3 when it contradicts itself.

    Every file is compared with its SHA-256, every table with its contract and
    fingerprint, ids between tables are followed, every object of the database is
    compared with what a release defines. Then everything is computed again that the
    release holds the data for: labels from verdicts by the recipe's policy, verdicts of
    rules from texts and references (a seeded sample of 3,000 answers; all with --full),
    costs from tokens and prices, the metering audit, the certificate, the split, each
    line of the card. Four lists are printed: what is proved, what is consistent, what
    has to be believed on the publisher's word, and which checks could not be made.

        routeyard verify yard/releases/demo/1.0.0

        routeyard verify yard/releases/demo/1.0.0 --full

        routeyard verify yard/releases/demo/1.0.0 --signer publisher.pub

        routeyard verify s3://bucket/releases/demo/1.0.0

    Args:
        release: Release folder or URL.
        signer: Require a signature by this Ed25519 public key (file or text).
        full: Compute all verdicts and intervals again, not a sample, fit the reference
            routers where embeddings are released, and run the programs that models wrote
            in the jail.
        images: Folder of the questions' images: each file that a question names must be
            there with the hash that the release states.
    """
    from routeyard.flows.publish import check_release
    from routeyard.pipelines.errors import GateFailed
    from routeyard.pipelines.proof.claims import KINDS
    from routeyard.pipelines.release.manifest import read_manifest
    from routeyard.pipelines.release.storage import is_url

    if not is_url(release) and not Path(release).is_dir():
        read_manifest(Path(release))
    found = check_release(release, signer=signer, full=full, images=_folder(images))
    lists: dict[str, list[Any]] = {str(kind): list(getattr(found, kind)) for kind in KINDS}
    data: dict[str, Any] = {"holds": not found.findings, "findings": found.findings, **lists}
    if found.findings:
        failed = GateFailed(
            "a check of the release failed"
            if len(found.findings) == 1
            else f"{len(found.findings)} checks of the release failed",
            where=release,
            next_step=found.next_step,
        )
        return Output(data, list(map(str, found.findings)), error=failed)
    lines = [
        f"{found.name} {found.version} holds: {found.files} files, {found.tables} tables, "
        f"{found.rows:,} rows"
    ]
    for scheme in found.leaks:
        near = scheme["near_duplicates"]
        lines.append(
            f"split scheme {scheme['scheme']!r}: of {scheme['test']:,} test questions "
            + (
                "nobody knows how many are word for word in train, since texts are withheld"
                if scheme["verbatim"] is None
                else f"{scheme['verbatim']:,} are word for word in train"
            )
            + ("" if near is None else f" and {near:,} have a near-duplicate there")
        )
    if found.yanked:
        lines.append(f"yanked: {found.yanked.reason}")
    for kind, heading in _HEADINGS.items():
        lines += [f"{heading}:", *(f"  {line}" for line in lists[kind])] if lists[kind] else []
    data |= {"name": found.name, "version": found.version}
    data |= {"tables": found.tables, "rows": found.rows}
    return Output(data | {"leaks": found.leaks, "yanked": found.yanked}, lines)


def _folder(images: Path | None) -> Path | None:
    from routeyard.pipelines.errors import BadInput

    if images is not None and not images.is_dir():
        raise BadInput(f"there is no folder {images}", next_step="correct `--images`")
    return images


_HEADINGS = {
    "proved": "proved (computed again from the release)",
    "consistent": "consistent (nothing in the release contradicts it)",
    "believed": "believed (on the publisher's word)",
    "not_run": "not run (checks that could not be made, and why)",
}
