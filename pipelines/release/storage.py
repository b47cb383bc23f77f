"""Releases on any storage that fsspec knows: the manifest is written last and read first."""

from __future__ import annotations

import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from routeyard.pipelines.common.errors import DiskFull, SourceError, VersionExists
from routeyard.pipelines.common.staging import is_full
from routeyard.pipelines.release.manifest import (
    MANIFEST,
    MARK,
    SIGNATURE,
    Finding,
    read_manifest,
    refuse_yanked,
)
from routeyard.schemas.errors import BadInput, RouteyardError
from routeyard.schemas.release import FileEntry, Manifest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

# Files that an untrusted manifest names, checked to be inside the release.

#: Folders of a release within each other, and bytes of a name in it; two and about fifty are used.
DEEPEST, _LONGEST = 8, 1_000


def wrong_name(name: str) -> str | None:
    """Why a name in a manifest is refused; None when it names a file inside the release."""
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST or name.count("/") > DEEPEST:
        return f"is longer than {_LONGEST:,} bytes or {DEEPEST} folders"
    path = PurePosixPath(name)
    if not name or not name.isprintable() or "\\" in name or ":" in name:
        return "is no plain file name"
    if path.is_absolute():
        return "is an absolute path"
    if ".." in path.parts:
        return "leads out of the release"
    if path.as_posix() != name or name == ".":
        return "is not written in its shortest form"
    return None


def sealed(release: Path, name: str, entry: FileEntry | None) -> Path:
    """The file that the manifest means: inside the release, of the size it was sealed with.

    A link is followed only to a file with the sealed SHA-256 (a hub's cache stores
    releases as links to files named by their content).

    Raises:
        SourceError: the name leads outside, or the file is not the sealed one.
    """
    if says := wrong_name(name):
        raise _refused(release, f"the manifest names {name[:200]!r}, which {says}")
    if entry is None:
        raise _refused(release, f"the manifest lists no checksum of {name}")
    path = release / name
    try:
        resolved = path.resolve(strict=True)
        result = resolved.stat()
    except OSError as error:
        raise _refused(release, f"{name} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(result.st_mode):
        raise _refused(release, f"{name} is not a regular file")
    if result.st_size != entry.size:
        says = f"has {result.st_size:,} bytes, the manifest says {entry.size:,}"
        raise _refused(release, f"{name} {says}")
    if not resolved.is_relative_to(release.resolve()) or path.is_symlink():
        from routeyard.pipelines.common.files import sha256

        if sha256(resolved) != entry.sha256:
            raise _refused(release, f"{name} is a link to something else than was sealed")
    return resolved


def outside_releases(out: Path) -> None:
    """Refuse an output path that is inside a release: nothing may be added to one.

    Raises:
        BadInput: `out` is a release, or is inside one.
    """
    where = out.resolve()
    for folder in (where, *where.parents):
        if not (folder / MANIFEST).is_file():
            continue
        try:
            read_manifest(folder)
        except SourceError:
            continue  # a manifest of something else
        raise BadInput(
            "the output path is inside a release, whose seal a new file would break",
            where=str(out),
            next_step=f"name a place outside {folder}",
        )


def _refused(release: Path, says: str) -> SourceError:
    return SourceError(
        f"the release cannot be opened: {says}",
        where=str(release),
        next_step=f"find what is wrong with `routeyard verify {release}`",
    )


#: Storages without folders: a file is put there as it is. Making a "folder" in one of them
#: can make a bucket, under a name that was mistyped.
_FLAT = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl"})


#: A dataset of a hub, by its `org/name` or, at an older version, `org/name@v1.0.0`.
_HUB = "hub:"


class StorageError(RouteyardError):
    """A storage refused, or could not be reached."""


@dataclass(frozen=True, slots=True)
class UploadResult:
    """Where a release went, which files were sent and which were there already."""

    url: str
    sent: tuple[str, ...]
    present: tuple[str, ...]


def is_url(place: str) -> bool:
    """Whether `place` names a storage (`s3://…`, `hub:org/name`) rather than a local path."""
    return "://" in place or place.startswith(_HUB)


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
        sent, present = [], []
        for name in names(release, manifest):
            target = f"{folder}/{name}"
            if _same(system, target, release / name):
                present.append(name)
                continue
            sent.append(name)
            if not dry_run:
                put_file(system, release / name, target, url)
        return UploadResult(
            f"{url.rstrip('/')}/{manifest.name}/{manifest.version}", (*sent,), (*present,)
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
            "read from the environment, as the storage's package says"
            if is_url(url)
            else "name a folder that can be made and written",
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

    if url.startswith(_HUB):
        url = f"hf://datasets/{url.removeprefix(_HUB)}"
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


# A detached Ed25519 signature of a release's manifest, which seals everything else.
#
# `manifest.json.sig` holds the 64 bytes of the signature (RFC 8032) over the bytes of
# `manifest.json`, so that other tools can check it as well:
# `openssl pkeyutl -verify -pubin -inkey KEY.pem -rawin -in manifest.json -sigfile
# manifest.json.sig`.

_KEYS = "an Ed25519 key in PEM (openssl genpkey -algorithm ed25519) or OpenSSH form"


def sign_release(release: Path, key: Path, *, password: str | None = None) -> Path:
    """Write `manifest.json.sig` beside the manifest; returns its path.

    Args:
        key: File with the private key; it is read and never copied.
        password: What the key is encrypted with, if it is.

    Raises:
        SourceError: the folder is no release.
        BadInput: the file holds no such key, or needs a password.
    """
    read_manifest(release)
    private = _private(key, password)
    path = release / SIGNATURE
    path.unlink(missing_ok=True)  # a link would be written through
    path.write_bytes(private.sign((release / MANIFEST).read_bytes()))
    return path


def check_signature(release: Path, signer: str) -> Iterator[Finding]:
    """Findings in the signature; `signer` is a public key or a file that holds one.

    Raises:
        BadInput: `signer` is no public key.
    """
    from cryptography.exceptions import InvalidSignature

    public = _public(signer)
    path = release / SIGNATURE
    if path.is_symlink() or not path.is_file():
        yield Finding("signature", SIGNATURE, "is missing: nobody signed this release")
        return
    if path.stat().st_size != 64:
        yield Finding("signature", SIGNATURE, "is no Ed25519 signature (64 bytes)")
        return
    try:
        public.verify(path.read_bytes(), (release / MANIFEST).read_bytes())
    except InvalidSignature:
        yield Finding("signature", SIGNATURE, "is not by that signer, or not of this manifest")


def _private(path: Path, password: str | None) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ed25519
    from cryptography.hazmat.primitives.serialization import (
        load_pem_private_key,
        load_ssh_private_key,
    )

    secret = password.encode() if password else None
    try:
        data = path.read_bytes()
        load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in data else load_pem_private_key
        key = load(data, secret)
    except OSError as error:
        raise BadInput(
            f"the key cannot be read: {error.strerror}",
            where=str(path),
            next_step="give the file of an Ed25519 private key; `ssh-keygen -t ed25519` makes one",
        ) from error
    except Exception:  # no part of the key file may appear in an error
        raise BadInput(
            "the file holds no private key that can be read",
            where=str(path),
            next_step=f"give {_KEYS}, and its password where it has one",
        ) from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise BadInput("the key is of another kind", where=str(path), next_step=f"give {_KEYS}")
    return key


def _public(signer: str) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric import ed25519
    from cryptography.hazmat.primitives.serialization import (
        load_pem_public_key,
        load_ssh_public_key,
    )

    text = signer.strip()
    inline = text.startswith(("ssh-ed25519 ", "-----BEGIN"))
    try:
        data = text.encode() if inline else Path(text).expanduser().read_bytes()
        load = load_ssh_public_key if data.startswith(b"ssh-") else load_pem_public_key
        key = load(data)
    except OSError as error:
        raise BadInput(
            f"the public key cannot be read: {error.strerror}",
            where=text,
            next_step="give the publisher's public key, as a file or as text",
        ) from error
    except Exception:
        raise BadInput(
            "there is no public key",
            where=text[:200] if not inline else None,
            next_step=f"give the public half of {_KEYS}",
        ) from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise BadInput("the key is of another kind", next_step=f"give {_KEYS}")
    return key
