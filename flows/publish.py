"""Releases checked, and sent to a hub, an object store or a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from routeyard.datacards.card import render
from routeyard.datacards.charts import can_draw
from routeyard.datacards.files import render as render_files
from routeyard.datacards.publish import publish_hub
from routeyard.pipelines.common.errors import BadInput, GateFailed
from routeyard.pipelines.common.staging import write_json
from routeyard.pipelines.release.manifest import MANIFEST, read_manifest, refuse_yanked, yanked
from routeyard.pipelines.release.storage import (
    filesystem,
    is_url,
    local_copy,
    names,
    outside_releases,
    put,
    storage_errors,
)
from routeyard.pipelines.verify.evidence import KINDS
from routeyard.pipelines.verify.prove import verify

if TYPE_CHECKING:
    from routeyard.pipelines.release.manifest import Finding, Yanked


@dataclass(frozen=True, slots=True)
class Delivery:
    """Which files of a release went, out of how many, and where they are now."""

    files: tuple[str, ...]
    of: int
    bytes: int
    where: str


@dataclass(frozen=True, slots=True)
class ReleaseCheck:
    """Findings on a release; its figures are empty where findings exist.

    Attributes:
        leaks: Counts of test questions that are also in train, per split scheme.
        proved, consistent, believed, not_run: What was computed again, what nothing contradicts,
            what rests on the publisher's word, and which checks could not be made: a line each.
    """

    findings: Sequence[Finding]
    name: str = ""
    version: str = ""
    files: int = 0
    tables: int = 0
    rows: int = 0
    leaks: Sequence[Mapping[str, Any]] = ()
    yanked: Yanked | None = None
    proved: Sequence[str] = ()
    consistent: Sequence[str] = ()
    believed: Sequence[str] = ()
    not_run: Sequence[str] = ()

    @property
    def next_step(self) -> str:
        """What repairs the release; a signature does not concern the content."""
        if any(finding.check != "signature" for finding in self.findings):
            return (
                "fetch it again from where it was published; "
                "if it was never moved, build it again under a new version"
            )
        if "nobody signed" in self.findings[0].says:
            return (
                "ask the publisher for manifest.json.sig, or leave --signer out: everything else "
                "holds; a release of yours is signed by `routeyard sign RELEASE --key KEY`"
            )
        return "ask the publisher for the key they sign with; everything else holds"


def check_release(
    release: str | Path,
    *,
    signer: str | None = None,
    full: bool = False,
    images: Path | None = None,
) -> ReleaseCheck:
    """Findings on a release (folder or URL), what of it is proved, and its figures without any.

    Args:
        signer: Ed25519 public key, as a file or text, that must have signed it.
        full: Compute everything again, instead of a sample.
        images: Folder of the questions' image files, whose hashes are compared.
    """
    from routeyard.flows.workspace import BASE, LABEL, LABELS
    from routeyard.pipelines.common import machine as memory
    from routeyard.pipelines.verify.database import unreadable

    with local_copy(str(release)) as folder:
        if not unreadable(folder):
            tables = read_manifest(folder).tables
            labels = tables["labels"].rows if "labels" in tables else 0
            need = BASE + min(LABEL * labels, LABELS)
            memory.check(f"a verification of {labels:,} labels", need)
        proof = _verified(folder, full=full, signer=signer, images=images)
        lists: dict[str, Any] = {kind: proof.of(kind) for kind in KINDS}
        if proof.findings:
            # What a table holds comes before how its file is written.
            findings = sorted(proof.findings, key=lambda finding: finding.check == "statistics")
            return ReleaseCheck(findings, **lists)
        manifest = read_manifest(folder)
        return ReleaseCheck(
            (), manifest.name, manifest.version, len(manifest.files) + 3, len(manifest.tables),
            sum(table.rows for table in manifest.tables.values()),
            proof.leaks, yanked(folder), **lists,
        )  # fmt: skip


def _verified(release: Path, **how: Any) -> Any:
    """What of a release is proved, with its card and plots made again."""
    draws = can_draw()
    files = partial(render_files, draw=draws)
    return verify(release, render_card=render, render_files=files, draws=draws, **how)


def check_target(to: str) -> None:
    """A target is a parameter that everyone may read: it holds no secret.

    Raises:
        BadInput: an empty address, or one with a password in it.
    """
    if not to.strip():
        raise BadInput(
            "the address to publish to is empty",
            next_step="give --to hub:org/name, a URL (s3://…), or a folder; `.` is this one",
        )
    if to.startswith("hub:") and not re.fullmatch(r"hub:[^/\s]+/[^/\s@]+", to):
        raise BadInput(
            f"{to} names no dataset of a hub", next_step="give --to hub:org/name, with both parts"
        )
    if "://" in to and (urlsplit(to).password or urlsplit(to).username):
        raise BadInput(
            "the address to publish to holds a name or a password",
            next_step="take them out; the storage's package reads them from the environment",
        )


def publish(release: Path, to: str, *, private: bool = False, dry_run: bool = False) -> Delivery:
    """Check a release and send it; files that are there already are not sent again.

    Args:
        to: `hub:org/name`, a URL (`s3://…`), or a folder.

    Raises:
        GateFailed: the release is damaged, or yanked.
        BadInput: the target holds that version with other content.
    """

    check_target(to)
    if not (release / MANIFEST).exists():
        read_manifest(release)
    # A wrong place ends it before all of the release is checked.
    place = to if is_url(to) else str(Path(to).absolute())
    if not is_url(to):
        outside_releases(Path(to))
    elif not to.startswith("hub:"):
        with storage_errors(to):
            filesystem(to)
    if findings := _verified(release).findings:
        raise GateFailed(
            f"the release does not hold: {findings[0].where} {findings[0].says}",
            where=str(release),
            next_step=f"see all of it with `routeyard verify {release}`",
        )
    manifest = read_manifest(release)
    files = names(release, manifest)
    size = sum((release / name).stat().st_size for name in files)
    if to.startswith("hub:"):
        refuse_yanked(release)
        done = publish_hub(
            release,
            to.removeprefix("hub:"),
            version=manifest.version,
            names=files,
            private=private,
            dry_run=dry_run,
        )
        unseen = "" if done.asked else "; the hub was not reached, so its contents are unknown"
        return Delivery(done.sent, len(files), size, f"{done.url} ({done.tag}){unseen}")
    stored = put(release, place, dry_run=dry_run)
    return Delivery(stored.sent, len(files), size, stored.url)


def publish_once(release: Path, to: str, root: Path) -> Delivery | None:
    """As `publish`, unless this release went there before; then null.

    The workspace remembers it, or the place has all of it.
    """

    manifest = read_manifest(release)
    path = root / "runs" / f"{manifest.name}.published.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if known.get(to) == manifest.fingerprint:
        return None
    sent = publish(release, to)  # a transfer that was cut off is continued
    write_json(path, known | {to: manifest.fingerprint})
    return sent if sent.files else None
