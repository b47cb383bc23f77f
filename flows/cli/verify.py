"""`routeyard verify`: does a release hold?"""

from __future__ import annotations

from routeyard.flows.cli.results import Output


def command(
    release: str,
    signer: str | None = None,
) -> Output:
    """Check a release against itself; exits 0 when it holds and 3 when it does not.

    Every file is compared with its SHA-256, every table with its contract and
    fingerprint, ids between tables are followed, every object of the database is
    compared with what a release defines, and each number of the card is computed
    again from the data. Nothing in the release is believed or run.

        routeyard verify yard/releases/demo/1.0.0

        routeyard verify yard/releases/demo/1.0.0 --signer publisher.pub

        routeyard verify s3://bucket/releases/demo/1.0.0

    Args:
        release: Release folder or URL.
        signer: Require a signature by this Ed25519 public key (file or text).
    """
    from routeyard.flows.publish import check_release
    from routeyard.pipelines.errors import GateFailed

    found = check_release(release, signer=signer)
    if found.findings:
        failed = GateFailed(
            f"{len(found.findings)} checks of the release failed",
            where=release,
            next_step=found.next_step,
        )
        data = {"holds": False, "findings": found.findings}
        return Output(data, list(map(str, found.findings)), error=failed)
    lines = [
        f"{found.name} {found.version} holds: {found.files} files, {found.tables} tables, "
        f"{found.rows:,} rows"
    ]
    for scheme in found.leaks:
        near = scheme["near_duplicates"]
        lines.append(
            f"split scheme {scheme['scheme']!r}: of {scheme['test']:,} test questions "
            f"{scheme['verbatim']:,} stand word for word in train"
            + ("" if near is None else f" and {near:,} have a near-duplicate there")
        )
    if found.yanked:
        lines.append(f"yanked: {found.yanked.reason}")
    data = {"holds": True, "findings": [], "name": found.name, "version": found.version}
    data |= {"tables": found.tables, "rows": found.rows}
    return Output(data | {"leaks": found.leaks, "yanked": found.yanked}, lines)
