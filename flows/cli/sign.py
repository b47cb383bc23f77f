"""`routeyard sign`: a detached signature beside a release's manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.results import Output


def command(
    release: Path,
    key: Annotated[Path, typer.Option()],
) -> Output:
    """Write `manifest.json.sig`: the manifest seals every file and every table.

        openssl genpkey -algorithm ed25519 -out key.pem

        openssl pkey -in key.pem -pubout -out publisher.pub

        routeyard sign yard/releases/demo/1.0.0 --key key.pem

    A key that is encrypted takes its password from ROUTEYARD_KEY_PASSWORD.

    Args:
        key: File with your Ed25519 private key.
    """
    import os

    from routeyard.pipelines.release.signature import sign_release

    path = sign_release(release, key, password=os.environ.get("ROUTEYARD_KEY_PASSWORD"))
    return Output({"path": path}, f"signed: {path}")
