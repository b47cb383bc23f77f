"""Signing a release and asking for a signer: keys made by the library that users have."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from routeyard.flows.cli import run
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.release.storage import check_signature, sign_release
from routeyard.schemas.release import Manifest

SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))


def private(path: Path, key=SECRET, *, form=PrivateFormat.PKCS8, password=None) -> Path:
    how = BestAvailableEncryption(password) if password else NoEncryption()
    path.write_bytes(key.private_bytes(Encoding.PEM, form, how))
    return path


def public(path: Path, key=SECRET) -> Path:
    form = PublicFormat.SubjectPublicKeyInfo
    path.write_bytes(key.public_key().public_bytes(Encoding.PEM, form))
    return path


def findings(release: Path, signer: object) -> list[tuple[str, str]]:
    return [(one.check, one.says) for one in check_signature(release, str(signer))]


def test_a_signed_release_holds_for_its_signer_and_is_the_same_without_asking(release, tmp_path):
    before = (release / "manifest.json").read_bytes()
    path = sign_release(release, private(tmp_path / "key.pem"))
    assert path == release / "manifest.json.sig"
    SECRET.public_key().verify(path.read_bytes(), before)  # what openssl would check
    assert (release / "manifest.json").read_bytes() == before
    assert findings(release, public(tmp_path / "pub.pem")) == []


def test_a_public_key_may_be_text_and_of_openssh(release, tmp_path):
    sign_release(release, private(tmp_path / "id_ed25519", form=PrivateFormat.OpenSSH))
    line = SECRET.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert findings(release, line + " someone@somewhere") == []
    assert findings(release, public(tmp_path / "pub.pem").read_text()) == []


def test_the_key_of_another_is_found(release, tmp_path):
    sign_release(release, private(tmp_path / "key.pem"))
    ((kind, said),) = findings(release, public(tmp_path / "pub.pem", OTHER))
    assert kind == "signature"
    assert "not by that signer" in said


def test_a_missing_signature_is_found(release, tmp_path):
    ((kind, said),) = findings(release, public(tmp_path / "pub.pem"))
    assert kind == "signature"
    assert "nobody signed" in said


def test_a_file_changed_and_sealed_again_is_found(release, tmp_path):
    sign_release(release, private(tmp_path / "key.pem"))
    signer = public(tmp_path / "pub.pem")
    name = "data/labels.parquet"
    (release / name).write_bytes(b"forged")
    found = json.loads((release / "manifest.json").read_text())
    found["files"][name] = {"sha256": hashlib.sha256(b"forged").hexdigest(), "size": 6}
    forged = Manifest.model_validate(found).sealed()
    assert findings(release, signer) == []  # the manifest is the signed one: its digests tell
    (release / "manifest.json").write_text(forged.to_json())
    ((kind, said),) = findings(release, signer)
    assert (kind, "not of this manifest" in said) == ("signature", True)


@pytest.mark.parametrize("size", [0, 63, 65])
def test_what_is_no_signature_is_found(release, tmp_path, size):
    (release / "manifest.json.sig").write_bytes(b"x" * size)
    ((kind, said),) = findings(release, public(tmp_path / "pub.pem"))
    assert (kind, "64 bytes" in said) == ("signature", True)


def test_a_signature_that_leads_elsewhere_is_not_followed(release, tmp_path):
    path = sign_release(release, private(tmp_path / "key.pem"))
    path.rename(tmp_path / "outside.sig")
    os.symlink(tmp_path / "outside.sig", path)
    assert "signature" in {kind for kind, _ in findings(release, public(tmp_path / "pub.pem"))}
    before = (tmp_path / "outside.sig").read_bytes()
    sign_release(release, private(tmp_path / "other.pem", OTHER))
    assert (tmp_path / "outside.sig").read_bytes() == before
    assert not path.is_symlink()


def test_an_encrypted_key_needs_its_password(release, tmp_path):
    key = private(tmp_path / "key.pem", password=b"open sesame")
    for wrong in (None, "sesame"):
        with pytest.raises(BadInput, match="no private key that can be read") as error:
            sign_release(release, key, password=wrong)
        assert "sesame" not in str(error.value)
    sign_release(release, key, password="open sesame")
    assert findings(release, public(tmp_path / "pub.pem")) == []


def test_what_is_no_key_is_refused_and_nothing_of_it_is_repeated(release, tmp_path):
    (tmp_path / "other").write_text("hunter2")
    elliptic = private(tmp_path / "ec.pem", generate_private_key(SECP256R1()))
    for path in (tmp_path / "other", tmp_path / "none.pem", elliptic, tmp_path):
        with pytest.raises(BadInput) as error:
            sign_release(release, path)
        assert "hunter2" not in str(error.value)
    assert not (release / "manifest.json.sig").exists()
    for signer in (tmp_path / "other", tmp_path / "none.pem", "ssh-ed25519 AAAA", elliptic):
        with pytest.raises(BadInput):
            findings(release, signer)


def test_the_two_commands(release, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ROUTEYARD_KEY_PASSWORD", "open sesame")
    key = private(tmp_path / "key.pem", password=b"open sesame")
    signer = public(tmp_path / "pub.pem")
    assert run(["sign", str(release), "--key", str(key)]) == 0
    assert "manifest.json.sig" in capsys.readouterr().out
    assert run(["verify", str(release), "--signer", str(signer)]) == 0
    (release / "manifest.json.sig").unlink()
    assert run(["verify", str(release), "--signer", str(signer)]) == 3
    said = capsys.readouterr()
    assert "nobody signed" in said.out
    assert "leave --signer out" in said.err
    assert "fetch it again" not in said.err
