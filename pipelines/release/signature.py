"""A detached Ed25519 signature of a release's manifest, which seals everything else.

`manifest.json.sig` holds the 64 bytes of the signature (RFC 8032) over the bytes of
`manifest.json`, so that other tools can check it as well:
`openssl pkeyutl -verify -pubin -inkey KEY.pem -rawin -in manifest.json -sigfile manifest.json.sig`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.release.finding import Finding
from routeyard.pipelines.release.manifest import MANIFEST, SIGNATURE, read_manifest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

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

    given = signer.strip()
    inline = given.startswith(("ssh-ed25519 ", "-----BEGIN"))
    try:
        data = given.encode() if inline else Path(given).expanduser().read_bytes()
        load = load_ssh_public_key if data.startswith(b"ssh-") else load_pem_public_key
        key = load(data)
    except OSError as error:
        raise BadInput(
            f"the public key cannot be read: {error.strerror}",
            where=given,
            next_step="give the publisher's public key, as a file or as text",
        ) from error
    except Exception:
        raise BadInput(
            "there is no public key",
            where=given[:200] if not inline else None,
            next_step=f"give the public half of {_KEYS}",
        ) from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise BadInput("the key is of another kind", next_step=f"give {_KEYS}")
    return key
