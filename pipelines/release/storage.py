"""Releases on any storage that fsspec knows: the manifest is written last and read first."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from typing import Any

from routeyard.pipelines.errors import DiskFull, RouteyardError, SourceError, VersionExists
from routeyard.pipelines.io.staging import is_full
from routeyard.pipelines.release.manifest import MANIFEST, SIGNATURE, read_manifest
from routeyard.pipelines.release.sealed_files import wrong_name
from routeyard.pipelines.release.yank import MARK, refuse_yanked
from routeyard.schemas.manifest import Manifest

#: Storages without folders: a file is put there as it is. Making a "folder" in one of them
#: can make a bucket, under a name that was mistyped.
_FLAT = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl"})


class StorageError(RouteyardError):
    """A storage refused, or could not be reached."""


@dataclass(frozen=True, slots=True)
class UploadResult:
    """Where a release went, which files were sent and which were there already."""

    url: str
    sent: tuple[str, ...]
    kept: tuple[str, ...]


def is_url(place: str) -> bool:
    """Whether `place` names a storage (`s3://…`, `memory://…`) rather than a local path."""
    return "://" in place


def put(release: Path, url: str, *, dry_run: bool = False) -> UploadResult:
    """Copy a release to `<url>/<name>/<version>/`, its manifest last.

    A reader looks for the manifest first, so it never sees half a release. A
    copy that was interrupted is continued: files that are there with the right
    content are kept.

    A yanked release is not copied to a new place; where it exists already, its mark is copied too.

    Raises:
        VersionExists: that version exists there with other content.
        GateFailed: the release was yanked, and is not there yet.
        DiskFull: the place has no room left.
        StorageError: the storage refused, or the connection was cut.
    """
    manifest = read_manifest(release)
    with storage_errors(url):
        system, root = filesystem(url)
        folder = f"{root.rstrip('/')}/{manifest.name}/{manifest.version}"
        if system.exists(f"{folder}/{MANIFEST}"):
            there = Manifest.model_validate_json(system.cat_file(f"{folder}/{MANIFEST}"))
            if there.fingerprint != manifest.fingerprint:
                raise VersionExists(
                    f"{manifest.name} {manifest.version} exists there with other content",
                    where=f"{url}/{manifest.name}/{manifest.version}",
                    next_step="set a new 'version' in the recipe and build again",
                )
        else:
            refuse_yanked(release)
        sent, kept = [], []
        for name in names(release, manifest):
            target = f"{folder}/{name}"
            if _same(system, target, release / name):
                kept.append(name)
                continue
            sent.append(name)
            if not dry_run:
                put_file(system, release / name, target, url)
        return UploadResult(
            f"{url.rstrip('/')}/{manifest.name}/{manifest.version}", (*sent,), (*kept,)
        )


@contextmanager
def storage_errors(url: str) -> Iterator[None]:
    """Turns the errors of any storage into `StorageError`."""
    try:
        yield
    except RouteyardError:
        raise
    except Exception as error:
        if is_full(error):
            raise DiskFull(
                "there is no room at the place to write",
                where=str(
                    getattr(error, "filename2", None) or getattr(error, "filename", None) or url
                ),
                next_step="free some space there and repeat the command: files already copied are "
                "kept, and the manifest is sent last, so that no reader takes it for a release",
            ) from error
        if isinstance(error, socket.gaierror):
            raise StorageError(
                "no host of that name is known",
                where=url,
                next_step="correct the address, or look whether this machine has a network",
            ) from error
        raise StorageError(
            f"the storage cannot be used: {type(error).__name__}: {str(error)[:300]}",
            where=url,
            next_step="repeat the command: files already copied are kept; credentials are "
            "read from the environment, as the storage's package says",
        ) from error


def put_file(system: Any, source: Path, target: str, url: str) -> None:
    """Copy a local file to a storage.

    Raises:
        SourceError: the storage has no such bucket.
    """
    flat = url.split("://")[0] in _FLAT
    if not flat:
        system.makedirs(str(PurePosixPath(target).parent), exist_ok=True)
    try:
        system.put_file(str(source), target)
    except FileNotFoundError as error:
        if not flat:
            raise
        raise SourceError(
            f"the storage has no place for {source.name}: {error}",
            where=url,
            next_step="correct the name of the bucket, or make it first",
        ) from error


def names(release: Path, manifest: Manifest) -> list[str]:
    """Files of a release in the order to send them; with the add-ons that are here."""
    database = manifest.database.file
    marks = [name for name in (MARK, SIGNATURE) if (release / name).exists()]
    inside = [name for name in manifest.files if not wrong_name(name) and (release / name).exists()]
    return [*inside, database, f"{database}.sha256", *marks, MANIFEST]


@contextmanager
def local_copy(place: str, *, add_ons: bool = True) -> Iterator[Path]:
    """The release as a local folder: itself, or a temporary copy of a URL.

    Raises:
        SourceError: there is no release at that place.
    """
    if not is_url(place):
        yield Path(place)
        return
    target = Path(tempfile.mkdtemp(prefix="routeyard-release-"))
    try:
        fetch(place, target, add_ons=add_ons)
        yield target
    finally:
        shutil.rmtree(target, ignore_errors=True)


def fetch(url: str, target: Path, *, add_ons: bool = True) -> Manifest:
    """Copy a release from a URL into the folder `target`, manifest first.

    Args:
        add_ons: False leaves the large optional tables (embeddings, hidden states) where they are.

    Raises:
        SourceError: there is no release at that address.
        StorageError: the storage refused, or could not be reached.
    """
    with storage_errors(url):
        system, root = filesystem(url)
        get_file(system, f"{root}/{MANIFEST}", target / MANIFEST, url)
        manifest = read_manifest(target)
        left = {e.file for e in manifest.tables.values() if e.kind == "add_on" and not add_ons}
        database = manifest.database.file
        for name in [*manifest.files, database, f"{database}.sha256"]:
            if name not in left:
                get_file(system, f"{root}/{_inside(name, url)}", target / name, url)
        for name in (MARK, SIGNATURE):
            if system.exists(f"{root}/{name}"):
                get_file(system, f"{root}/{name}", target / name, url)
        return manifest


def _inside(name: str, url: str) -> str:
    """A file name of a stranger's manifest, kept inside the release."""
    if wrong_name(name):
        raise SourceError(f"the manifest names a file outside the release: {name!r}", where=url)
    return name


def get_file(system: Any, source: str, target: Path, url: str) -> None:
    """Copy a file of a storage here.

    Raises:
        SourceError: there is no such file.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        system.get_file(source, str(target))
    except FileNotFoundError as error:
        raise SourceError(
            f"there is no {target.name} at that address",
            where=url,
            next_step="give the address of a release: …/<name>/<version>",
        ) from error


def filesystem(url: str) -> tuple[Any, str]:
    """The storage of an address, and the path in it.

    Raises:
        SourceError: no package for such a storage is installed.
    """
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise SourceError(
            f"no storage is known for {url.split('://')[0]}://: {error}",
            where=url,
            next_step="install the storage's package (s3fs, gcsfs, adlfs), or give a local path",
        ) from error
    # Another process may have written there since this one looked last.
    system.invalidate_cache()
    return system, str(root)


def _same(system: Any, target: str, path: Path) -> bool:
    """Whether the storage holds exactly this file (compared by size, then by content)."""
    if not system.exists(target) or system.size(target) != path.stat().st_size:
        return False
    with system.open(target, "rb") as there, path.open("rb") as here:
        return file_digest(there, "sha256").digest() == file_digest(here, "sha256").digest()
